"""`elias_xmc.ray` on a real Ray: scoring with actors that die, and training members as tasks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import K, QUICK, answer_of, make_data
from sabotage import DyingScorings, train_run_and_die

import elias_xmc
from elias_xmc import _engines

ray = pytest.importorskip("ray")
pyarrow = pytest.importorskip("pyarrow")
import ray.data  # noqa: E402
from ray.exceptions import RayError  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(
        # A run that failed keeps its actor's CPU, and four of them are to fail.
        num_cpus=6,
        include_dashboard=False,
        object_store_memory=200 << 20,
        configure_logging=False,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def dataset(texts):
    table = pyarrow.table({"id": range(len(texts)), "text": texts, "more": [f"more {at}" for at in range(len(texts))]})
    return ray.data.from_arrow([table.slice(at, 500) for at in range(0, len(texts), 500)])


def found_in(answers) -> dict[int, tuple]:
    rows = answers.take_all()
    found = {row["id"]: answer_of(row["labels"], row["scores"], row["probabilities"]) for row in rows}
    assert len(found) == len(rows)
    return found


def failure_of(answers) -> str:
    """What consuming the answers ends with."""
    try:
        answers.take_all()
    except RayError as error:
        return str(error)
    return "nothing"


def test_answers_are_those_of_the_command(dataset, model, expected):
    answers = elias_xmc.ray.predict(dataset, model, "text", K, batch_size=300)
    assert found_in(answers) == expected
    assert answers.columns() == ["id", "text", "more", "labels", "scores", "probabilities"]


def test_some_columns_stay_and_the_model_is_shipped(dataset, model, expected, tmp_path, monkeypatch):
    copy = str(tmp_path / "model")
    elias_xmc.load(model).save(copy)
    answers = elias_xmc.ray.predict(dataset, copy, "text", K, keep=["id"], ship=True, actors=1, threads=2)
    os.rename(copy, tmp_path / "gone")
    assert found_in(answers) == expected
    assert answers.columns() == ["id", "labels", "scores", "probabilities"]


def test_an_actor_that_is_killed_loses_nothing(dataset, model, expected, tmp_path, monkeypatch):
    flag = tmp_path / "died"
    monkeypatch.setattr(elias_xmc.ray, "Scoring", DyingScorings(flag))
    answers = elias_xmc.ray.predict(dataset, model, "text", K, batch_size=200, actors=2)
    assert not flag.exists()
    assert found_in(answers) == expected
    assert flag.exists()


def test_nothing_is_loaded_before_it_is_consumed_and_errors_are_in_plain_words(dataset, damaged, model, tmp_path):
    _engines._models.clear()
    for path, text, message in (
        (damaged, "text", "it is damaged: its SHA-256"),
        (str(tmp_path / "nowhere"), "text", "nowhere: no such file or directory on this worker"),
        (model, "title", "no column title; the columns are id, text, more"),
        (model, "id", "a column of type Int64, expected strings"),
    ):
        assert message in failure_of(elias_xmc.ray.predict(dataset, path, text, actors=1))
    assert not _engines._models
    with pytest.raises(ValueError, match="threads is 0, expected at least 1"):
        elias_xmc.ray.predict(dataset, model, threads=0)


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_members_trained_as_tasks_are_the_model_of_one_machine(tmp_path, monkeypatch):
    """A worker that is killed in a training changes nothing."""
    data = make_data(1100, seed=4)
    expected, out = tmp_path / "expected", tmp_path / "out"
    elias_xmc.train(*data, out=str(expected), **QUICK, ensemble_members=2)
    monkeypatch.setattr(elias_xmc.ray, "_train_run", train_run_and_die)
    died = tmp_path / "out.members" / "1.died"
    with monkeypatch.context() as context:
        # What was finished is kept until the model is complete.
        context.setattr(elias_xmc.ray, "_gather", _fail)
        with pytest.raises(ValueError, match="not today"):
            elias_xmc.ray.train_members(*data, out=out, members=2, checkpoint_every=0, **QUICK)
    assert died.exists()
    with pytest.raises(ValueError, match="resume=True continues them, overwrite=True discards them"):
        elias_xmc.ray.train_members(*data, out=out, members=2, **QUICK)
    model = elias_xmc.ray.train_members(*data, out=out, members=2, resume=True, checkpoint_every=0, **QUICK)
    assert contents(out) == contents(expected)
    assert model.is_calibrated
    assert sorted(file.name for file in tmp_path.iterdir()) == ["expected", "out"]
    with pytest.raises(ValueError, match="exists: choose another output"):
        elias_xmc.ray.train_members(*data, out=out, members=2, **QUICK)


def _fail(*_) -> None:
    raise elias_xmc._errors.EliasValueError("not today")


def test_a_grid_of_settings_becomes_one_model(tmp_path):
    data, held_out = make_data(300, seed=5), make_data(300, seed=6)
    grid = [{"stage2_epochs": 2}, {"stage2_epochs": 4, "train_seed": 9}]
    options = {**QUICK, "hold_out_min_points": 20}
    model = elias_xmc.ray.train_members(*data, out=tmp_path / "model", members=grid, calibrate=held_out, **options)
    assert model.is_calibrated and model.inspect()["n_members"] == 2
    alone = elias_xmc.train(*data, out=tmp_path / "alone", **{**options, **grid[1]})
    other = elias_xmc.train(*data, out=tmp_path / "other", **{**options, **grid[0], "train_seed": 0})
    merged = elias_xmc.merge([other, alone], tmp_path / "merged", calibrate=held_out)
    assert contents(tmp_path / "merged") == contents(Path(model.path))
    assert merged.predict("ripe red apple", 1)[0].probability is not None

    with pytest.raises(ValueError, match="encoder.dim is 16, not 32"):
        elias_xmc.ray.train_members(
            *data, out=tmp_path / "unfit", members=[{}, {"encoder_dim": 16}], **options
        )
    with pytest.raises(TypeError, match="train_members has no threads: cpus"):
        elias_xmc.ray.train_members(*data, out=tmp_path / "other", members=2, threads=3)
