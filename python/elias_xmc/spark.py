"""Scoring on Spark.

    from elias_xmc import spark
    answers = spark.predict(df, "/shared/my-model", text="title", k=5, keep=["id"])

Texts go from Spark to the model and answers back as Arrow batches; no Python object is made per row. Nothing is loaded
before an action asks for the answers. docs/many-machines.md tells how models reach the workers.
"""

from __future__ import annotations

import functools
import os
import tempfile
import zipfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._engines import ANSWERS, Scoring
from ._errors import EliasValueError
from ._model import Model
from ._types import PathLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["predict"]


def predict(
    df: DataFrame,
    model: Model | PathLike,
    text: str = "text",
    k: int = 10,
    *,
    keep: Iterable[str] | None = None,
    threshold: float | None = None,
    stage: str | None = None,
    threads: int = 1,
    ship: bool = False,
) -> DataFrame:
    """The `k` best labels of each text of a data frame: the columns `labels`, `scores` and `probabilities`.

    All columns of `df` stay, or those that `keep` names. The answers are arrays of equal length, best label first;
    `probabilities` is null if the model is not calibrated, all three are null where the text is.

    `model` is a path that all workers see. With `ship`, it is a path on this machine, and Spark copies the model to each
    executor once. Each task has `threads` threads; `threshold` and `stage` are those of `Model.predict`.
    """
    from pyspark.sql.types import ArrayType, FloatType, StringType, StructField, StructType

    scoring = Scoring.of(model, text, k, keep, threshold, stage, threads)
    kept = scoring.kept(df.columns)
    if not isinstance(df.schema[text].dataType, StringType):
        raise EliasValueError(f"a column {text} of type {df.schema[text].dataType.simpleString()}, expected strings")
    shipped = _ship(df.sparkSession, scoring) if ship else None
    types = (StringType(), FloatType(), FloatType())
    answers = [StructField(name, ArrayType(kind)) for name, kind in zip(ANSWERS, types)]
    schema = StructType([df.schema[name] for name in kept] + answers)

    # Only what is read travels to Python, under numbers, since Spark hands on no column with a dot in its name.
    needed = list(dict.fromkeys([*kept, text]))
    columns = [df["`" + name.replace("`", "``") + "`"].alias(f"c{place}") for place, name in enumerate(needed)]

    def score(batches: Iterable[Any]) -> Iterable[Any]:
        named = (batch.rename_columns(needed) for batch in batches)
        return (scoring if shipped is None else scoring.at(_place_of(shipped))).batches(named)

    return df.select(*columns).mapInArrow(score, schema)


def _ship(session: SparkSession, scoring: Scoring) -> str:
    """Gives the model to Spark as an archive, which each executor unpacks once; returns its name there."""
    name = f"elias-{str(scoring.fingerprint)[:16]}"
    if scoring.fingerprint is None:
        raise EliasValueError(f"{scoring.path}: no such directory to ship")
    archive = os.path.join(_archives().name, f"{name}.zip")
    if not os.path.exists(archive):
        with zipfile.ZipFile(archive, "w", strict_timestamps=False) as file:
            for part in sorted(os.scandir(scoring.path), key=lambda part: part.name):
                if part.is_file():
                    file.write(part.path, part.name)
    session.addArtifacts(f"{archive}#{name}", archive=True)
    return name


@functools.cache
def _archives() -> tempfile.TemporaryDirectory[str]:
    """Where archives are until this process ends: executors fetch them when they have their first task."""
    return tempfile.TemporaryDirectory(prefix="elias-spark-")


def _place_of(name: str) -> str:
    """Where Spark unpacked an archive on this worker."""
    from pyspark import SparkFiles

    return str(SparkFiles.get(name))
