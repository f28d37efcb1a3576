"""From what users hold to what the Rust half takes: lists of strings, and the arrays of sorted CSR matrices.

NumPy and SciPy are imported only where someone gives a matrix.
"""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

from ._elias import Core, Dataset
from ._errors import EliasValueError
from ._types import Labels, PathLike

__all__ = [
    "as_list",
    "csr_parts",
    "is_matrix",
    "is_path",
    "make_dataset",
    "options_of",
    "path_of",
    "points_of",
    "threads_of",
]


def is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def is_matrix(value: object) -> bool:
    """Whether a value is a sparse matrix or a dense array with rows and columns."""
    if hasattr(value, "tocsr"):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim == 2


def csr_parts(matrix: Any, what: str = "the matrix") -> tuple[Any, Any, Any, int]:
    """`(indptr, indices, data, n_cols)` with sorted rows, no duplicates and 32-bit values."""
    import numpy
    from scipy.sparse import csr_matrix

    if not hasattr(matrix, "tocsr"):
        array = numpy.asarray(matrix)
        if array.dtype.kind not in "biuf" or array.ndim != 2:
            raise _not_numbers(what, array)
        matrix = csr_matrix(array)
    rows = matrix.tocsr()
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise _not_numbers(what, rows)
    # The flag may be out of date in a matrix whose arrays were changed, so look.
    rows = rows.__class__((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    with numpy.errstate(over="ignore"):
        data = rows.data.astype(numpy.float32, copy=False)
    return rows.indptr, rows.indices, data, rows.shape[1]


def _not_numbers(what: str, array: Any) -> EliasValueError:
    found = f"{array.dtype} in {array.ndim} dimensions"
    return EliasValueError(f"{what}: found {found}, expected numbers in rows and columns")


def as_list(values: Any, what: str) -> list[Any]:
    """A list of the values of a list, a column of pandas or polars, an Arrow array or any other iterable."""
    if isinstance(values, list):
        return values
    if isinstance(values, (str, bytes, dict)):
        raise EliasValueError(f"{what}: found one {type(values).__name__}, expected a list")
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            values = getattr(values, name)()
            break
    try:
        return list(values)
    except TypeError:
        raise EliasValueError(f"{what}: found {type(values).__name__}, expected a list") from None


def points_of(points: Any) -> Any:
    """Texts as a list, or features as the arrays of a matrix."""
    return csr_parts(points, "the features") if is_matrix(points) else as_list(points, "texts")


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
    names = None if label_names is None else [str(name) for name in as_list(label_names, "label_names")]
    if is_matrix(labels):
        parts: Any = csr_parts(labels, "the labels")
    else:
        parts = as_list(labels, "labels")
    return Dataset.build(points, parts, names, known)


def path_of(path: PathLike) -> str:
    return os.fspath(path)


def options_of(k: int, threshold: float | None, stage: str | None, threads: int | None) -> dict[str, Any]:
    """The options of a prediction, as the Rust half takes them."""
    return {
        "k": max(-1, min(operator.index(k), sys.maxsize)),
        "threshold": None if threshold is None else float(threshold),
        "stage": None if stage is None else str(stage),
        "threads": threads_of(threads),
    }


def threads_of(threads: int | None) -> int | None:
    return None if threads is None else max(0, min(operator.index(threads), sys.maxsize))
