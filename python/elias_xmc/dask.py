"""Scoring on Dask.

    from elias_xmc import dask
    answers = dask.predict(ddf, "/shared/my-model", text="title", k=5, keep=["id"])

Nothing is loaded before the answers are computed. docs/many-machines.md tells how models reach the workers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._engines import ANSWERS, Scoring
from ._model import Model
from ._types import PathLike

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

__all__ = ["predict"]


def predict(
    ddf: DataFrame,
    model: Model | PathLike,
    text: str = "text",
    k: int = 10,
    *,
    keep: Iterable[str] | None = None,
    threshold: float | None = None,
    stage: str | None = None,
    threads: int = 1,
) -> DataFrame:
    """The `k` best labels of each text of a data frame: the columns `labels`, `scores` and `probabilities`.

    All columns of `ddf` stay, or those that `keep` names, and so does the index. The answers are Arrow lists of equal
    length, best label first; `probabilities` is null if the model is not calibrated, all three are null where the text is.

    `model` is a path that all workers see. Each task has `threads` threads; `threshold` and `stage` are those of
    `Model.predict`.
    """
    import pandas
    import pyarrow

    scoring = Scoring.of(model, text, k, keep, threshold, stage, threads)
    kept = scoring.kept(list(ddf.columns))
    meta = ddf._meta[kept].copy()
    for name, kind in zip(ANSWERS, (pyarrow.string(), pyarrow.float32(), pyarrow.float32())):
        meta[name] = pandas.Series([], index=meta.index, dtype=pandas.ArrowDtype(pyarrow.list_(kind)))
    needed = list(dict.fromkeys([*kept, text]))
    return ddf[needed].map_partitions(_score, scoring, kept, meta=meta)


def _score(frame: Any, scoring: Scoring, kept: list[str]) -> Any:
    """A partition with its answers."""
    import pandas
    import pyarrow

    scored = frame[kept].copy(deep=False)
    texts = pyarrow.Array.from_pandas(frame[scoring.text])
    if pyarrow.types.is_null(texts.type):
        texts = texts.cast(pyarrow.string())
    for name, column in zip(ANSWERS, scoring.answers(texts)):
        scored[name] = pandas.Series(pandas.arrays.ArrowExtensionArray(column), index=frame.index)
    return scored
