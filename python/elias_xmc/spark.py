"""Scoring on Spark.

    from elias_xmc import spark
    answers = spark.predict(df, "/shared/my-model", text="title", k=5, keep=["id"])

Texts go from Spark to the model and answers back as Arrow batches; no Python object is made per row. Nothing is loaded
before an action asks for the answers. docs/many-machines.md tells how models reach the workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._engines import ANSWERS, Scoring
from ._errors import EliasValueError
from ._model import Model
from ._types import PathLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["predict"]


def predict(
    df: DataFrame,
    model: Model | PathLike,
    text: str = "text",
    k: int = 5,
    *,
    keep: Iterable[str] | None = None,
    threshold: float = 0.0,
    stage: str | None = None,
    threads: int = 1,
    ship: bool = False,
) -> DataFrame:
    """The `k` best labels of each text of a data frame: the columns `labels`, `scores` and `probabilities`.

    All columns of `df` stay, or those that `keep` names. The answers are arrays of equal length, best label first;
    `probabilities` is null if the model is not calibrated, all three are null where the text is.

    `model` is a path that all workers see. With `ship`, it is a path on this machine, and Spark copies the directory to
    each worker once. Each task has `threads` threads; `threshold` and `stage` are those of `Model.predict`.
    """
    from pyspark.sql.types import ArrayType, FloatType, StringType, StructField, StructType

    scoring = Scoring.of(model, text, k, keep, threshold, stage, threads)
    kept = scoring.kept(df.columns)
    if not isinstance(df.schema[text].dataType, StringType):
        raise EliasValueError(f"a column {text} of type {df.schema[text].dataType.simpleString()}, expected strings")
    is_shipped = bool(ship)
    if is_shipped:
        if scoring.fingerprint is None:
            raise EliasValueError(f"{scoring.path}: no such directory to ship")
        df.sparkSession.sparkContext.addFile(scoring.path, recursive=True)
    types = (StringType(), FloatType(), FloatType())
    answers = [StructField(name, ArrayType(kind)) for name, kind in zip(ANSWERS, types)]
    schema = StructType([df.schema[name] for name in kept] + answers)

    # Only what is read travels to Python, under numbers, since Spark hands on no column with a dot in its name.
    needed = list(dict.fromkeys([*kept, text]))
    columns = [df["`" + name.replace("`", "``") + "`"].alias(f"c{place}") for place, name in enumerate(needed)]

    def score(batches: Iterable[Any]) -> Iterable[Any]:
        named = (batch.rename_columns(needed) for batch in batches)
        return _shipped(scoring).batches(named) if is_shipped else scoring.batches(named)

    return df.select(*columns).mapInArrow(score, schema)


def _shipped(scoring: Scoring) -> Scoring:
    """The scoring with the copy of the model that Spark brought to this worker."""
    from pyspark import SparkFiles

    return scoring.at(SparkFiles.get(os.path.basename(scoring.path)))
