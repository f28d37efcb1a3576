"""`elias_xmc.spark` on a real Spark, with workers that die and tasks that are tried again."""

from __future__ import annotations

import os

import pytest
from conftest import K, answer_of
from sabotage import DyingScorings

import elias_xmc
from elias_xmc import _engines

pyspark = pytest.importorskip("pyspark")
from pyspark.errors import PythonException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402


@pytest.fixture(scope="module")
def spark(directory):
    # Two cores, and each task is tried four times.
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
    builder = builder.config("spark.local.dir", str(directory / "spark")).config("spark.sql.shuffle.partitions", "4")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame(spark, texts):
    rows = [(number, text, f"more {number}") for number, text in enumerate(texts)]
    return spark.createDataFrame(rows, "id long, text string, more string").repartition(4).cache()


def collected(answers) -> dict[int, tuple]:
    rows = answers.collect()
    found = {row.id: answer_of(row.labels, row.scores, row.probabilities) for row in rows}
    assert len(found) == len(rows)
    return found


def test_answers_are_those_of_the_command(frame, model, expected):
    answers = elias_xmc.spark.predict(frame, model, "text", K)
    kinds = ["bigint", "string", "string", "array<string>", "array<float>", "array<float>"]
    assert answers.columns == ["id", "text", "more", "labels", "scores", "probabilities"]
    assert [kind for _, kind in answers.dtypes] == kinds
    assert collected(answers) == expected
    (row,) = answers.where("id = 7").collect()
    assert row.more == "more 7"


def test_some_columns_stay_and_the_model_is_shipped(frame, model, expected, tmp_path):
    copy = str(tmp_path / "model")
    elias_xmc.load(model).save(copy)
    # The second time, Spark has it already.
    for _ in range(2):
        answers = elias_xmc.spark.predict(frame, copy, "text", K, keep=["id"], ship=True)
    os.rename(copy, tmp_path / "gone")
    assert answers.columns == ["id", "labels", "scores", "probabilities"]
    assert collected(answers) == expected
    renamed = frame.withColumnRenamed("text", "the title").withColumnRenamed("id", "id.x")
    answers = elias_xmc.spark.predict(renamed, model, "the title", K, keep="id.x", threads=2)
    assert answers.columns[0] == "id.x"
    assert answers.count() == len(expected)


def test_a_worker_that_is_killed_loses_nothing(frame, model, expected, tmp_path, monkeypatch):
    flag = tmp_path / "died"
    monkeypatch.setattr(elias_xmc.spark, "Scoring", DyingScorings(flag))
    answers = elias_xmc.spark.predict(frame, model, "text", K)
    assert not flag.exists()
    assert collected(answers) == expected
    assert flag.exists()


def test_nothing_is_loaded_before_an_action_and_errors_are_in_plain_words(spark, frame, damaged, model, tmp_path):
    _engines._models.clear()
    answers = elias_xmc.spark.predict(frame, damaged)
    with pytest.raises(PythonException, match="it is damaged: its SHA-256"):
        answers.count()
    answers = elias_xmc.spark.predict(frame, str(tmp_path / "nowhere"))
    with pytest.raises(PythonException, match="nowhere: no such file or directory on this worker"):
        answers.count()
    assert not _engines._models
    for columns, keep, message in (
        (["id"], None, "no column text; the columns are id"),
        (["text", "id"], ["more"], "no column more; the columns are text, id"),
    ):
        with pytest.raises(ValueError, match=message):
            elias_xmc.spark.predict(frame.select(*columns), model, keep=keep)
    with pytest.raises(ValueError, match="type bigint, expected strings"):
        elias_xmc.spark.predict(frame, model, text="id")
    with pytest.raises(ValueError, match="have a column labels, too"):
        elias_xmc.spark.predict(frame.withColumnRenamed("more", "labels"), model)
    with pytest.raises(ValueError, match="k is 0, expected at least 1"):
        elias_xmc.spark.predict(frame, model, k=0)
    with pytest.raises(ValueError, match="no such directory to ship"):
        elias_xmc.spark.predict(frame, str(tmp_path / "nowhere"), ship=True)


def test_missing_texts_and_models_without_probabilities(spark, uncalibrated, texts):
    rows = [(0, texts[0]), (1, None), (2, texts[2])]
    frame = spark.createDataFrame(rows, "id long, text string").coalesce(1)
    first, missing, last = elias_xmc.spark.predict(frame, elias_xmc.load(uncalibrated), k=2).orderBy("id").collect()
    assert (missing.labels, missing.scores, missing.probabilities) == (None, None, None)
    assert len(first.labels) == len(last.scores) == 2 and first.probabilities is None
    assert first.labels == [answer.label for answer in elias_xmc.load(uncalibrated).predict(texts[0], 2)]
