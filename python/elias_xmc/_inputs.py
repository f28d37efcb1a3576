"""From what users hold to what the Rust half takes: lists of strings, and the arrays of sorted CSR matrices.

NumPy and SciPy are imported only where someone gives a matrix.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ._elias import Core, Dataset
from ._errors import EliasTypeError, EliasValueError
from ._frames import columns_of, is_missing, unframed
from ._types import Labels, PathLike

__all__ = [
    "as_list",
    "check_sparse",
    "corrections_of",
    "csr_parts",
    "is_matrix",
    "is_path",
    "make_dataset",
    "number",
    "options_of",
    "pairs_of",
    "path_of",
    "points_of",
    "threads_of",
    "whole",
]


def is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def is_matrix(value: object) -> bool:
    """Whether a value is a sparse matrix or a dense array with rows and columns."""
    if hasattr(value, "tocsr"):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim == 2


#: No matrix has more columns: a model of them would have terabytes.
MAX_COLUMNS = 1 << 28


def csr_parts(matrix: Any, what: str = "the matrix") -> tuple[Any, Any, Any, int]:
    """`(indptr, indices, data, n_cols)` with sorted rows, no duplicates and 32-bit values.

    SciPy does not check the arrays of a matrix before it sorts or converts it, and writes beyond their ends if they are
    wrong: they are checked here first.
    """
    import numpy
    from scipy.sparse import csr_matrix

    if not hasattr(matrix, "tocsr"):
        array = numpy.asarray(matrix)
        if array.dtype.kind not in "biuf" or array.ndim != 2:
            raise _not_numbers(what, array)
        matrix = csr_matrix(array)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise _not_numbers(what, matrix)
    if matrix.shape[1] > MAX_COLUMNS:
        raise EliasValueError(f"{what}: found {matrix.shape[1]} columns, expected at most {MAX_COLUMNS}")
    check_sparse(matrix, what)
    try:
        rows = matrix.tocsr()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise EliasValueError(f"{what}: {error}") from error
    check_sparse(rows, what)
    # The flag may be out of date in a matrix whose arrays were changed, so look.
    rows = rows.__class__((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    with numpy.errstate(over="ignore"):
        data = rows.data.astype(numpy.float32, copy=False)
    return rows.indptr, rows.indices, data, rows.shape[1]


def check_sparse(matrix: Any, what: str) -> None:
    """Checks the arrays of a sparse matrix that its methods trust."""
    import numpy

    n_rows, n_cols = matrix.shape
    kind = getattr(matrix, "format", None)

    def check(is_right: Any, problem: str) -> None:
        if not is_right:
            raise EliasValueError(f"{what}: a broken sparse matrix, {problem}")

    def check_within(numbers: Any, size: int, name: str) -> None:
        is_list = isinstance(numbers, numpy.ndarray) and numbers.ndim == 1 and numbers.dtype.kind in "iu"
        check(is_list, f"whose {name} are no list of integers")
        if len(numbers):
            least, most = int(numbers.min()), int(numbers.max())
            check(0 <= least and most < size, f"with {name} from {least} to {most} of {size}")

    if kind in ("csr", "csc", "bsr"):
        major, minor = (n_cols, n_rows) if kind == "csc" else (n_rows, n_cols)
        if kind == "bsr":
            blocks: tuple[int, ...] = getattr(matrix.data, "shape", ())
            is_whole = len(blocks) == 3 and min(blocks[1:]) > 0 and not major % blocks[1] and not minor % blocks[2]
            check(is_whole, "whose blocks do not fit its shape")
            major, minor = major // blocks[1], minor // blocks[2]
        offsets, places = matrix.indptr, matrix.indices
        check_within(offsets, numpy.iinfo(numpy.int64).max, "row offsets")
        check(len(offsets) == major + 1, f"with {len(offsets)} row offsets, not {major + 1}")
        check(offsets[0] == 0, f"whose row offsets begin with {offsets[0]}")
        check((offsets[1:] >= offsets[:-1]).all(), "whose row offsets descend")
        n_values = len(matrix.data) if getattr(matrix.data, "ndim", 0) else -1
        check(len(places) == n_values, f"with {len(places)} columns for {n_values} values")
        check(offsets[-1] <= n_values, f"whose row offsets end at {offsets[-1]} of {n_values} values")
        check_within(places[: offsets[-1]], minor, "columns")
    elif kind == "coo":
        check_within(matrix.row, n_rows, "rows")
        check_within(matrix.col, n_cols, "columns")
        lengths = {len(matrix.row), len(matrix.col), numpy.size(matrix.data)}
        check(len(lengths) == 1, f"with lists of lengths {sorted(lengths)}")
    elif kind == "lil":
        pairs = zip(matrix.rows, matrix.data)
        is_even = len(matrix.rows) == len(matrix.data) == n_rows and all(len(a) == len(b) for a, b in pairs)
        check(is_even, "with columns and values of different lengths")
        check(all(0 <= column < n_cols for row in matrix.rows for column in row), "with columns beyond its shape")


def _not_numbers(what: str, array: Any) -> EliasValueError:
    found = f"{array.dtype} in {array.ndim} dimensions"
    return EliasValueError(f"{what}: found {found}, expected numbers in rows and columns")


def as_list(values: Any, what: str) -> list[Any]:
    """A list of the values of a list, a column of pandas or polars, an Arrow array or any other iterable."""
    if isinstance(values, list):
        return values
    if isinstance(values, (str, bytes, dict)):
        raise EliasValueError(f"{what}: found one {type(values).__name__}, expected a list")
    if columns_of(values) is not None:
        raise EliasValueError(f"{what}: found a data frame, expected a list or one column")
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            values = getattr(values, name)()
            break
    try:
        return list(values)
    except TypeError:
        raise EliasValueError(f"{what}: found {type(values).__name__}, expected a list") from None


def points_of(points: Any) -> Any:
    """Texts as a list, or features as the arrays of a matrix; a data frame is its only column, or a matrix of numbers."""
    points, _ = unframed(points, "texts")
    return csr_parts(points, "the features") if is_matrix(points) else as_list(points, "texts")


def corrections_of(texts: Any, labels: Any, rejected: Any) -> list[tuple[str, list[str], list[str]]]:
    """Texts with the names of accepted and of rejected labels."""
    if isinstance(texts, str):
        texts, labels, rejected = [texts], [labels], [rejected]
    texts = as_list(texts, "texts")
    rows = []
    for lists, what in ((labels, "labels"), (rejected, "rejected")):
        lists = [()] * len(texts) if lists is None else as_list(lists, what)
        if len(lists) != len(texts):
            raise EliasValueError(f"texts has {len(texts)} entries and {what} {len(lists)}: expected as many of the one as of the other")
        rows.append([[] if is_missing(names) else as_list(names, what) for names in lists])
    for value, what in [(text, "texts") for text in texts] + [(name, "labels") for row in rows for names in row for name in names]:
        if not isinstance(value, str):
            raise EliasTypeError(f"{what}: found {type(value).__name__}, expected strings")
    return list(zip(texts, *rows))


def make_dataset(
    points: Any,
    labels: Labels | None,
    *,
    part: str,
    label_names: Any = None,
    known: Core | Dataset | None = None,
    reading: dict[str, Any] | None = None,
    threads: int | None = None,
) -> Dataset:
    """The data set of texts or features with labels, or of a path."""
    if is_path(points):
        if labels is not None:
            raise EliasValueError("labels: found some beside a path, which has its own; texts are given as a list")
        columns = dict(reading or {})
        text_column = columns.pop("text_column", None) or []
        columns["text_columns"] = [text_column] if isinstance(text_column, str) else list(text_column)
        return Dataset.read(os.fspath(points), part, known=known, threads=threads_of(threads), **columns)
    if any(value is not None for value in (reading or {}).values()):
        raise EliasValueError("format, text_column, label_column and label_separator are for a path")
    if labels is None:
        raise EliasValueError("labels: found none, expected a list of labels for each text")
    points = points_of(points)
    labels, columns_named = unframed(labels, "labels")
    names = columns_named if label_names is None else [str(name) for name in as_list(label_names, "label_names")]
    seen: set[str] = set()
    for name in names or []:
        if name in seen:
            raise EliasValueError(f"label_names: {name!r} is given twice")
        seen.add(name)
    if is_matrix(labels):
        parts: Any = csr_parts(labels, "the labels")
    else:
        parts = [[] if is_missing(row) else row for row in as_list(labels, "labels")]
    n_points, n_rows = _length(points), _length(parts)
    if n_points != n_rows:
        kind = "texts" if isinstance(points, list) else "features"
        raise EliasValueError(f"{kind} has {n_points} entries and labels {n_rows}: expected as many of the one as of the other")
    return Dataset.build(points, parts, names, known)


def _length(parts: Any) -> int:
    """The number of entries of a list, or of rows of a matrix in parts."""
    return len(parts) if isinstance(parts, list) else len(parts[0]) - 1


def path_of(path: PathLike) -> str:
    try:
        return os.fspath(path)
    except TypeError:
        raise EliasTypeError(f"a path: found {type(path).__name__}, expected a string or a path") from None


def options_of(
    k: int,
    threshold: float | None = None,
    stage: str | None = None,
    threads: int | None = None,
    *,
    allow: Iterable[str | int] | None = None,
    deny: Iterable[str | int] = (),
    thresholds: Mapping[str | int, float] | None = None,
) -> dict[str, Any]:
    """The options of a prediction, as the Rust half takes them."""
    own_thresholds = {} if thresholds is None else thresholds
    if not isinstance(own_thresholds, Mapping):
        raise EliasTypeError(f"thresholds: expected a mapping of labels to numbers, found {type(thresholds).__name__}")
    labels = labels_of(own_thresholds, "thresholds")
    return {
        "allow": None if allow is None else labels_of(allow, "allow"),
        "deny": labels_of(deny, "deny"),
        "thresholds": list(zip(labels, (number(value, "thresholds") for value in own_thresholds.values()))),
        "k": max(-1, min(whole(k, "k"), sys.maxsize)),
        "threshold": None if threshold is None else number(threshold, "threshold"),
        "stage": None if stage is None else str(stage),
        "threads": threads_of(threads),
    }


def labels_of(labels: Any, what: str) -> list[str | int]:
    """Names and numbers of labels."""
    if isinstance(labels, (str, bytes)):
        raise EliasTypeError(f"{what}: expected labels, found a single {type(labels).__name__}: give a list")
    try:
        items = list(labels)
    except TypeError:
        raise EliasTypeError(f"{what}: expected labels, found {type(labels).__name__}") from None
    return [item if isinstance(item, str) else _label_number(item, what) for item in items]


def _label_number(value: Any, what: str) -> int:
    found = whole(value, what)
    if not 0 <= found < 1 << 32:
        raise EliasValueError(f"{what}: no label has the number {found}")
    return found


def threads_of(threads: int | None) -> int | None:
    return None if threads is None else max(0, min(whole(threads, "threads"), sys.maxsize))


def synonyms_of(synonyms: Any) -> str | list[tuple[str, str]]:
    """A path, or pairs of a phrase and the words that it adds."""
    if is_path(synonyms):
        return path_of(synonyms)
    if isinstance(synonyms, dict):
        synonyms = list(synonyms.items())
    pairs = as_list(synonyms, "synonyms")
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise EliasValueError(f"synonyms: found {pair!r}, expected pairs of a phrase and the words that it adds")
    return [(phrase, words) for phrase, words in pairs]


def dense_of(X_dense: Any) -> Any:
    """Embeddings of texts as an array of 32-bit floats with a row per text."""
    import numpy

    try:
        dense = numpy.ascontiguousarray(X_dense, dtype=numpy.float32)
    except (TypeError, ValueError) as error:
        raise EliasValueError(f"X_dense: expected an array of numbers with a row per text: {error}") from None
    if dense.ndim != 2 or dense.shape[1] == 0:
        raise EliasValueError(f"X_dense: found the shape {dense.shape}, expected a row per text")
    return dense


def texts_with(texts: Any, X_dense: Any) -> Any:
    """Texts or a matrix as the Rust half takes them, with embeddings of the texts if there are any."""
    if X_dense is None:
        return points_of(texts)
    texts = [texts] if isinstance(texts, str) else points_of(texts)
    if not isinstance(texts, list):
        raise EliasValueError("X_dense: expected texts beside it, found a matrix")
    return {"texts": texts, "dense": dense_of(X_dense)}


def cut_offs_of(at: Any) -> list[int] | None:
    """Numbers of answers to measure at; None for the usual ones."""
    if at is None:
        return None
    numbers = [whole(k, "at") for k in as_list(at, "at")]
    for k in numbers:
        if not 0 < k <= sys.maxsize:
            raise EliasValueError(f"at: found {k}, expected numbers of answers of at least 1")
    return numbers


def pairs_of(filter: Any) -> list[tuple[int, int]]:
    """Pairs of a row and a label to leave out."""
    try:
        return [(int(row), int(label)) for row, label in filter]
    except (TypeError, ValueError, OverflowError) as error:
        raise EliasTypeError(f"filter: expected pairs of a row and a label: {error}") from None


def whole(value: Any, what: str) -> int:
    """An integer, also one of NumPy's."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise EliasTypeError(f"{what}: {error}") from None


def number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise EliasTypeError(f"{what}: {error}") from None
