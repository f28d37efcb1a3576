"""Data frames: one column, a matrix of numbers, or a clear error; missing labels; names of columns."""

from __future__ import annotations

import pickle

import numpy
import pytest
from conftest import QUICK, make_data
from scipy.sparse import csr_matrix

import elias_xmc
from elias_xmc import EliasClassifier, EliasError

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

MAKERS = [pandas.DataFrame, polars.DataFrame, pyarrow.table]


@pytest.mark.parametrize("frame_of", MAKERS)
def test_a_frame_of_one_column_is_that_column(data, memory_model, frame_of):
    texts, labels = data
    expected = memory_model.predict(texts)
    assert memory_model.predict(frame_of({"text": texts})) == expected
    assert elias_xmc.train(frame_of({"text": texts}), frame_of({"labels": labels}), **QUICK).predict(texts) == expected
    assert (memory_model.predict_csr(frame_of({"a": texts})) != memory_model.predict_csr(texts)).nnz == 0


@pytest.mark.parametrize("frame_of", MAKERS)
def test_a_frame_of_several_columns_is_refused_and_not_read_as_its_names(data, memory_model, frame_of):
    frame = frame_of({"text": data[0], "id": list(range(120))})
    for use in (
        lambda: memory_model.predict(frame),
        lambda: elias_xmc.train(frame, data[1], **QUICK),
        lambda: memory_model.embed(frame),
    ):
        with pytest.raises(EliasError, match=r"texts: found a data frame with the columns 'text', 'id'.*frame\['text'\]"):
            use()
    with pytest.raises(EliasError, match="labels: found a data frame with the columns"):
        elias_xmc.train(data[0], frame, **QUICK)


@pytest.mark.parametrize("frame_of", MAKERS)
def test_a_frame_of_zeros_and_ones_names_its_labels(data, memory_model, frame_of):
    texts, labels = data
    names = memory_model.labels
    one_hot = frame_of({name: [name in row for row in labels] for name in names})
    model = elias_xmc.train(texts, one_hot, **QUICK)
    assert model.labels == names and model.predict(texts) == memory_model.predict(texts)
    assert memory_model.evaluate(texts, one_hot)["p@1"] == memory_model.evaluate(texts, labels)["p@1"]
    classifier = EliasClassifier(**QUICK).fit(texts, one_hot)
    assert list(classifier.classes_) == names
    assert classifier.predict(texts).shape == (120, len(names))
    assert classifier.score(texts, one_hot) > 0.9
    assert classifier.predict_topk(texts[:1], k=1)[0][0].label in names


def test_a_sparse_frame_stays_sparse(data, memory_model):
    frame = pandas.Series(data[1]).str.join("|").str.get_dummies().astype(pandas.SparseDtype(int, 0))
    model = elias_xmc.train(data[0], frame, **QUICK)
    assert model.labels == sorted(memory_model.labels)


def test_a_frame_of_one_column_of_texts_fits_a_classifier(data):
    frame = pandas.DataFrame({"text": data[0]})
    classifier = EliasClassifier(**QUICK).fit(frame, data[1])
    assert classifier.score(frame, data[1]) > 0.9


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, numpy.nan])
def test_missing_labels_are_none(data, missing):
    texts, labels = data
    some = [*labels[:100], *[missing] * 20]
    none = [*labels[:100], *[[]] * 20]
    expected = elias_xmc.train(texts, none, **QUICK).predict(texts)
    assert elias_xmc.train(texts, some, **QUICK).predict(texts) == expected
    assert elias_xmc.train(texts, pandas.Series(some), **QUICK).predict(texts) == expected
    classifier = EliasClassifier(**QUICK).fit(texts, some)
    assert classifier.score(texts, some) > 0.9


def test_a_model_in_memory_is_pickled_with_its_bytes(memory_model, data):
    copy = pickle.loads(pickle.dumps(memory_model))
    assert copy.path is None and copy.predict(data[0]) == memory_model.predict(data[0])
    again = pickle.loads(pickle.dumps(copy))
    assert again.predict(data[0]) == memory_model.predict(data[0])


def test_names_of_labels_in_a_classifier(data):
    texts, labels = data
    names = ["weather", "vehicle", "music", "fruit", "cooking", "red", "green", "blue", "never"]
    dense = numpy.array([[name in row for name in names] for row in labels], dtype=int)
    for y in (dense, csr_matrix(dense), labels):
        classifier = EliasClassifier(label_names=names, **QUICK).fit(texts, y)
        assert list(classifier.classes_) == names == classifier.model_.labels
        assert classifier.predict(texts).shape == (120, 9)
        assert classifier.predict_topk(texts[:1], k=1)[0][0].label in labels[0]
    for y, given, message in (
        (dense, names[:3], "3 entries for the 9 columns"),
        (labels, names[1:], "does not have the label 'weather'"),
        (["a"] * 60 + ["b"] * 60, ["a", "b"], "one class per point"),
    ):
        with pytest.raises(EliasError, match=message):
            EliasClassifier(label_names=given, **QUICK).fit(texts, y)


def test_thresholds_of_single_labels_in_a_classifier(data):
    texts, labels = data
    plain = EliasClassifier(threshold=0.2, **QUICK).fit(texts, labels)
    strict = EliasClassifier(threshold=0.2, thresholds={"fruit": 1.0}, **QUICK).fit(texts, labels)
    fruit = list(plain.classes_).index("fruit")
    before, after = plain.predict(texts).toarray(), strict.predict(texts).toarray()
    assert before[:, fruit].sum() > 0 and after[:, fruit].sum() == 0
    assert (numpy.delete(before, fruit, 1) == numpy.delete(after, fruit, 1)).all()
    with pytest.raises(ValueError, match="frut"):
        EliasClassifier(thresholds={"frut": 1.0}, **QUICK).fit(texts, labels).predict(texts)


def test_lengths_that_differ_are_named(data):
    with pytest.raises(EliasError, match="texts has 120 entries and labels 5"):
        elias_xmc.train(data[0], data[1][:5], **QUICK)
    with pytest.raises(EliasError, match="X has 120 points and y 5"):
        EliasClassifier(**QUICK).fit(data[0], data[1][:5])


def test_too_few_points_to_calibrate_on_are_warned_of():
    texts, labels = make_data(30)
    settings = {key: value for key, value in QUICK.items() if key != "final_score_kind"}
    with pytest.warns(UserWarning, match="30 points are too few"):
        EliasClassifier(**settings, hold_out_min_points=100).fit(texts, labels)
