"""`elias_xmc.dask` on a real Dask, in threads and on a cluster whose workers die."""

from __future__ import annotations

import pytest
from conftest import K, answer_of
from sabotage import DyingScorings

import elias_xmc
from elias_xmc import _engines

pandas = pytest.importorskip("pandas")
dataframe = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def frame(texts):
    rows = pandas.DataFrame({"id": range(len(texts)), "text": texts, "more": [f"more {at}" for at in range(len(texts))]})
    return dataframe.from_pandas(rows, npartitions=7)


@pytest.fixture(scope="module")
def client(directory):
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, local_directory=str(directory)) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def found_in(answers) -> dict[int, tuple]:
    columns = zip(answers["id"], *(answers[name].tolist() for name in _engines.ANSWERS))
    def given(values):
        return None if values is pandas.NA else values
    found = {number: answer_of(labels, scores, given(probabilities)) for number, labels, scores, probabilities in columns}
    assert len(found) == len(answers)
    return found


def test_answers_are_those_of_the_command(frame, model, expected):
    answers = elias_xmc.dask.predict(frame, model, "text", K)
    assert list(answers.columns) == ["id", "text", "more", "labels", "scores", "probabilities"]
    computed = answers.compute(scheduler="threads")
    assert (computed.dtypes == answers.dtypes).all()
    assert str(computed["labels"].dtype) == "list<item: string>[pyarrow]"
    assert found_in(computed) == expected
    assert computed.index.equals(frame.compute().index) and computed["more"].iloc[7] == "more 7"
    few = elias_xmc.dask.predict(frame, model, "text", K, keep=["id"], threads=2)
    assert list(few.columns) == ["id", "labels", "scores", "probabilities"]
    assert found_in(few.compute(scheduler="sync")) == expected


def test_a_worker_that_is_killed_loses_nothing(client, frame, model, expected, tmp_path, monkeypatch):
    flag = tmp_path / "died"
    monkeypatch.setattr(elias_xmc.dask, "Scoring", DyingScorings(flag))
    answers = elias_xmc.dask.predict(frame, model, "text", K)
    assert not flag.exists()
    assert found_in(client.compute(answers).result()) == expected
    assert flag.exists()


def test_nothing_is_loaded_before_it_is_computed_and_errors_are_in_plain_words(client, frame, damaged, model, tmp_path):
    _engines._models.clear()
    answers = elias_xmc.dask.predict(frame, damaged)
    with pytest.raises(elias_xmc.EliasError, match="it is damaged: its SHA-256"):
        client.compute(answers).result()
    answers = elias_xmc.dask.predict(frame, str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere: no such file or directory on this worker"):
        client.compute(answers).result()
    assert not _engines._models
    with pytest.raises(ValueError, match="no column text; the columns are id, more"):
        elias_xmc.dask.predict(frame[["id", "more"]], model)
    with pytest.raises(ValueError, match="have a column scores, too"):
        elias_xmc.dask.predict(frame.rename(columns={"id": "scores"}), model)
    with pytest.raises(ValueError, match="expected strings"):
        elias_xmc.dask.predict(frame, model, text="id").compute(scheduler="sync")


def test_missing_texts_and_a_model_that_was_replaced(uncalibrated, model, texts, tmp_path):
    place = str(tmp_path / "model")
    elias_xmc.load(uncalibrated).save(place)
    rows = pandas.DataFrame({"text": [texts[0], None, texts[2]]})
    frame = dataframe.from_pandas(rows, npartitions=1)
    answers = elias_xmc.dask.predict(frame, place, k=2)
    computed = answers.compute(scheduler="sync")
    assert computed.isna().to_numpy().tolist() == [[False] * 3 + [True], [True] * 4, [False] * 3 + [True]]
    elias_xmc.load(model).save(place, overwrite=True)
    # The old model is still mapped here; a worker that has to load it finds another.
    assert answers.compute(scheduler="sync").equals(computed)
    _engines._models.clear()
    with pytest.raises(ValueError, match="not the one that was there when the query was made"):
        answers.compute(scheduler="sync")
    assert elias_xmc.dask.predict(frame, place, k=2).compute(scheduler="sync")["probabilities"].notna().sum() == 2
    assert len(_engines._models) == 1
