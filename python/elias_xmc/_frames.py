"""Data frames of pandas and polars, Arrow tables, data sets of Hugging Face: what is meant by one.

A frame of one column is that column; a frame of numbers alone is a matrix whose columns have names. Anything else is
refused: iterating over a frame of pandas gives the names of its columns.
"""

from __future__ import annotations

from typing import Any

from ._errors import EliasValueError

__all__ = ["columns_of", "is_missing", "unframed"]

#: Columns that an error names.
N_SHOWN = 6


def columns_of(value: Any) -> list[Any] | None:
    """The names of the columns of a data frame; None if the value is none."""
    names = getattr(value, "column_names", None)
    if names is None and hasattr(value, "dtypes"):
        names = getattr(value, "columns", None)
    return None if names is None or isinstance(names, dict) else list(names)


def unframed(value: Any, what: str) -> tuple[Any, list[str] | None]:
    """The column or the matrix of a data frame, and the names of the matrix's columns; other values as they are."""
    names = columns_of(value)
    if names is None:
        return value, None
    columns = [value.iloc[:, place] if hasattr(value, "iloc") else value[name] for place, name in enumerate(names)]
    if len(columns) == 1:
        return columns[0], None
    matrix = _matrix(value, columns)
    if matrix is not None:
        return matrix, [str(name) for name in names]
    shown = ", ".join(repr(str(name)) for name in names[:N_SHOWN]) + (", …" if len(names) > N_SHOWN else "")
    hint = f": give one of them, such as frame[{str(names[0])!r}]" if names else ""
    raise EliasValueError(f"{what}: found a data frame with the columns {shown or 'of nothing'}, expected one column{hint}")


def _matrix(frame: Any, columns: list[Any]) -> Any:
    """The matrix of columns of numbers; None if one of them holds something else."""
    import numpy

    if hasattr(frame, "sparse"):  # sparse columns of pandas
        return frame.sparse.to_coo().tocsr()
    arrays = [numpy.asarray(column) for column in columns]
    if not arrays or any(array.dtype.kind not in "biuf" or array.ndim != 1 for array in arrays):
        return None
    return numpy.column_stack(arrays)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, and what pandas has for it."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
