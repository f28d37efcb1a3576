"""Learning from corrections, in memory, on disk and with scikit-learn's verb."""

from __future__ import annotations

import pickle

import numpy
import pytest
from conftest import make_data

import elias_xmc

TEXT = "an unheard of ripe zeppelin"


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    texts, labels = make_data(300, seed=3)
    path = tmp_path_factory.mktemp("learning") / "model"
    elias_xmc.train([*texts, TEXT, TEXT], [*labels, ["music"], ["music"]], out=path, stage1_epochs=3, stage2_epochs=3, encoder_dim=16)
    return path


def scores(model):
    return {answer.label: answer.score for answer in model.predict(TEXT, k=model.n_labels)}


def test_a_correction_changes_the_next_answer(on_disk):
    model = elias_xmc.load(on_disk)
    before = scores(model)
    assert max(before, key=before.get) == "music"
    assert model.learn(TEXT, ["fruit"], ["music"]) is model
    after = scores(model)
    # The final score of so few points does not always rise with one more similar text, but it heeds it.
    assert after["fruit"] != before["fruit"] and after["music"] < 0.001 < before["music"]
    # The directory is unharmed, and what was learned is pickled and saved.
    assert model.path is None and scores(elias_xmc.load(on_disk)) == before
    assert scores(pickle.loads(pickle.dumps(model))) == after


def test_texts_labels_and_matrices_are_learned_alike(on_disk, tmp_path):
    lists, rows = elias_xmc.load(on_disk), elias_xmc.load(on_disk)
    texts, labels = ["ripe one", "fast two"], [["fruit"], ["music"]]
    lists.learn(texts, labels, [[], None])
    column = lists.labels.index
    rows.learn(texts, numpy.array([[name in row for name in lists.labels] for row in labels], dtype=int))
    assert column("fruit") != column("music") and scores(lists) == scores(rows)
    assert scores(lists.save(tmp_path / "saved")) == scores(lists)


def test_corrections_are_kept_with_a_model_on_disk(on_disk, tmp_path):
    path = tmp_path / "model"
    elias_xmc.load(on_disk).save(path)
    model = elias_xmc.learn(path, [TEXT], rejected=[["music"]])
    assert model.path == str(path) and scores(model)["music"] < 0.001
    assert scores(elias_xmc.load(path)) == scores(model)
    assert elias_xmc.learn(path, TEXT, ["fruit"], []).labels == model.labels
    for bad in (lambda: elias_xmc.learn(path, TEXT, ["unheard of"]), lambda: elias_xmc.learn(path, TEXT)):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(FileNotFoundError):
        elias_xmc.learn(tmp_path / "nothing", TEXT, ["fruit"])


def test_bad_corrections(on_disk):
    model = elias_xmc.load(on_disk)
    before = scores(model)
    for texts, labels, rejected, problem in [
        ([TEXT], [["unheard of"]], None, "unheard of"),
        (TEXT, ["unheard of"], None, "unheard of"),
        (TEXT, ["fruit"], ["fruit"], "fruit"),
        (TEXT, None, None, "neither"),
        ([TEXT], [["fruit"]], [], "expected as many"),
        ([TEXT, 7], [["fruit"], ["fruit"]], [[], []], "found int"),
        ([TEXT], ["fruit"], [[]], "found one str"),
    ]:
        with pytest.raises(elias_xmc.EliasError, match=problem):
            model.learn(texts, labels, rejected)
    assert scores(model) == before


def test_weights_of_texts_count_in_training():
    texts, labels = make_data(200, seed=4)
    settings = {"stage1_epochs": 3, "stage2_epochs": 3, "encoder_dim": 16}
    one = elias_xmc.train(texts, labels, **settings)
    assert scores(elias_xmc.train(texts, labels, sample_weight=[1] * 200, **settings)) == scores(one)
    assert scores(elias_xmc.train(texts, labels, sample_weight=numpy.full(200, 0.5), **settings)) != scores(one)
    for bad in ([1] * 199, [-1.0] * 200, [float("nan")] * 200, ["heavy"] * 200):
        with pytest.raises(elias_xmc.EliasError):
            elias_xmc.train(texts, labels, sample_weight=bad, **settings)
    pytest.importorskip("sklearn")
    # Points that contradict the others, and do not count.
    wrong = [["music"] if "music" not in row else ["fruit"] for row in labels]
    weights = [1.0] * 200 + [0.0] * 200
    classifier = elias_xmc.EliasClassifier(**settings).fit(texts * 2, labels + wrong, sample_weight=weights)
    assert classifier.score(texts, labels) > 0.8


def test_partial_fit_trains_once_and_then_learns():
    pytest.importorskip("sklearn")
    texts, labels = make_data(300, seed=3)
    settings = {"stage1_epochs": 3, "stage2_epochs": 3, "encoder_dim": 16}
    every = sorted({label for row in labels for label in row})
    classifier = elias_xmc.EliasClassifier(**settings).partial_fit(texts, labels, classes=[*every, "unused"])
    assert list(classifier.classes_) == [*every, "unused"]
    before = scores(classifier.model_)
    assert classifier.partial_fit([TEXT], [["music"]]) is classifier
    assert scores(classifier.model_)["music"] > before["music"]
    with pytest.raises(ValueError, match="unheard of"):
        classifier.partial_fit([TEXT], [["unheard of"]])
    with pytest.raises(ValueError):
        classifier.partial_fit([TEXT, TEXT], [["fruit"]])
    one = [row[0] for row in labels]
    single = elias_xmc.EliasClassifier(**settings).partial_fit(texts, one, classes=sorted(set(one)))
    assert single.partial_fit([TEXT] * 3, [one[0]] * 3).predict([TEXT]).shape == (1,)
    with pytest.raises(ValueError, match="not among classes"):
        elias_xmc.EliasClassifier(**settings).partial_fit(texts, one, classes=sorted(set(one))[1:])
