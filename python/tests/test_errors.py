"""Bad input ends in a clear exception, never in a crash."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys

import csr_fuzz
import numpy
import pytest
from conftest import QUICK
from hypothesis import HealthCheck, given, settings, strategies as st
from scipy.sparse import csr_matrix

import elias_xmc
from elias_xmc import EliasError
from elias_xmc._inputs import csr_parts, options_of


def test_every_error_is_ours_and_pythons():
    with pytest.raises(FileNotFoundError, match="no such file") as caught:
        elias_xmc.load("/nowhere/model")
    assert isinstance(caught.value, EliasError)
    with pytest.raises(ValueError, match="did you mean stage2_epochs") as caught:
        elias_xmc.train(["a"], [["x"]], stage2_epoch=3)
    assert isinstance(caught.value, EliasError)
    import pickle

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "texts, labels, message",
    [
        (["a b", "c"], [["x"]], "texts has 2 entries and labels 1"),
        ([], [], "cannot train"),
        (["", ""], [["x"], ["y"]], "cannot train"),
        (["a", None], [["x"], ["y"]], "text 1 is of type NoneType"),
        (["a", float("nan")], [["x"], ["y"]], "text 1 is of type float"),
        (["a", b"b"], [["x"], ["y"]], "text 1 is of type bytes"),
        (["a", "b"], [["x"], [None]], "labels of point 1: found a label of type NoneType"),
        (["a", "b"], [["x"], [float("nan")]], "labels of point 1: found a label of type float"),
        (["a", "b"], [["x"], {"y": -1}], "relevance -1"),
        (["a", "b"], [["x"], {"y": float("nan")}], "relevance NaN"),
        (["a", "b"], [["x"], {"y": "much"}], "relevance much"),
        (["a", "b"], [[], []], "cannot train"),
        (["a", "b"], None, "labels: found none"),
        (["a", "b"], "xy", "labels: found one str"),
        (7, [["x"]], "texts: found int"),
        (["a", "\ud800"], [["x"], ["y"]], "surrogates not allowed"),
        ("/nowhere/data.jsonl", None, "no such file"),
    ],
)
def test_bad_training_data(texts, labels, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        elias_xmc.train(texts, labels)


def test_labels_beside_a_path_are_refused(tmp_path):
    with pytest.raises(ValueError, match="beside a path"):
        elias_xmc.train(str(tmp_path), [["x"]])


def sparse(data, indices, indptr, shape):
    """A matrix that SciPy's constructor does not check."""
    matrix = csr_matrix(shape)
    matrix.data, matrix.indices, matrix.indptr = (numpy.asarray(part) for part in (data, indices, indptr))
    return matrix


@pytest.mark.parametrize(
    "X, Y, message",
    [
        (csr_matrix(numpy.eye(3)), csr_matrix(numpy.eye(4)), "features has 3 entries and labels 4"),
        (csr_matrix([[numpy.nan, 1.0]]), csr_matrix([[1]]), "NaN"),
        (csr_matrix([[numpy.inf, 1.0]]), csr_matrix([[1]]), "inf"),
        (csr_matrix([[1e300, 1.0]]), csr_matrix([[1]]), "inf"),
        (numpy.eye(3), csr_matrix(-numpy.eye(3)), "relevance -1"),
        (numpy.eye(3), csr_matrix((3, 4)), "cannot train"),
        (csr_matrix((0, 5)), csr_matrix((0, 5)), "cannot train"),
        (csr_matrix((3, 0)), csr_matrix(numpy.eye(3)), "cannot train"),
        (numpy.array([["a", "b"]]), csr_matrix([[1]]), "expected numbers"),
        (numpy.array([[1j]]), csr_matrix([[1]]), "expected numbers"),
        (csr_matrix([[1j]]), csr_matrix([[1]]), "expected numbers"),
    ],
)
def test_bad_matrices(X, Y, message):
    with pytest.raises(ValueError, match=message):
        elias_xmc.train(X, Y, **QUICK)


@pytest.mark.parametrize(
    "matrix",
    [
        sparse([1.0], [7], [0, 1], (1, 2)),
        sparse([1.0], [-1], [0, 1], (1, 2)),
        sparse([1.0], [0], [0, 5], (1, 2)),
        sparse([1.0, 1.0], [0, 1], [0, 2, 1], (2, 2)),
        sparse([1.0], [0], [-1, 1], (1, 2)),
        sparse([1.0, 2.0], [0], [0, 1], (1, 2)),
    ],
)
def test_broken_matrices(matrix):
    with pytest.raises(EliasError, match="a broken sparse matrix"):
        elias_xmc.metrics(matrix, matrix)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_row_offsets_that_descend_are_refused_before_scipy_sorts(kind):
    n = 20_000
    matrix = csr_fuzz.CLASSES[kind]((4, n) if kind == "csr" else (n, 4))
    matrix.indptr = numpy.array([0, n, 0, 10**6, n], dtype=numpy.int32)
    matrix.indices = numpy.arange(n, dtype=numpy.int32)[::-1].copy()
    matrix.data = numpy.ones(n)
    # A crash would end the tests.
    for use in (lambda: elias_xmc.metrics(matrix, matrix), lambda: elias_xmc.train(matrix, matrix, **QUICK)):
        with pytest.raises(ValueError, match="row offsets descend") as caught:
            use()
        assert isinstance(caught.value, EliasError)
    with pytest.raises(ValueError, match="row offsets descend"):
        elias_xmc.EliasClassifier(**QUICK).fit(matrix, ["a", "b", "c", "d"])


@given(st.integers(0, 2**64))
@settings(max_examples=2000, deadline=None)
def test_made_up_arrays_are_refused_or_taken_for_what_they_say(seed):
    csr_fuzz.check(csr_parts, EliasError, *csr_fuzz.case(random.Random(seed)))


def test_a_matrix_of_too_many_columns_is_refused_at_once():
    wide = csr_matrix(([1.0], ([0], [2**31 - 2])), shape=(1, 2**31 - 1))
    for points, labels in ((wide, numpy.eye(1)), (numpy.eye(1), wide)):
        with pytest.raises(EliasError, match="found 2147483647 columns"):
            elias_xmc.train(points, labels)


def test_label_names_are_distinct():
    with pytest.raises(EliasError, match="label_names: 'a' is given twice"):
        elias_xmc.train(numpy.eye(3), numpy.eye(3), label_names=["a", "b", "a"])


def test_wrong_kinds_are_errors_of_ours_too(model):
    for use in (
        lambda: model.predict("apple", k="many"),
        lambda: model.predict("apple", threshold="high"),
        lambda: model.predict("apple", threads=1.5),
        lambda: model.predict("\ud800"),
        lambda: model.predict(["apple", "\ud800"]),
        lambda: elias_xmc.load(7),
        lambda: elias_xmc.train(["a"], [["\ud800"]]),
        lambda: elias_xmc.train(["a"], [["x"]], memory_limit="much"),
        lambda: elias_xmc.metrics(numpy.eye(2), numpy.eye(2), filter=[("a", 1)]),
    ):
        with pytest.raises(EliasError):
            use()


def test_names_must_fit_the_label_matrix(model):
    with pytest.raises(ValueError, match="2 label names for a matrix of 3 columns"):
        elias_xmc.train(numpy.eye(3), numpy.eye(3), label_names=["a", "b"])
    with pytest.raises(ValueError, match="a label matrix of 3 columns for a model of 8 labels"):
        model.evaluate(["a", "b", "c"], csr_matrix(numpy.eye(3)))


def test_bad_predictions(model):
    for k in (0, -1, -(2**62)):
        with pytest.raises(ValueError, match="expected at least 1"):
            model.predict("apple", k=k)
    assert len(model.predict("apple", k=2**62)) == 8
    assert len(model.predict("apple", k=2**80)) == 8
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        model.predict("apple", k="many")
    with pytest.raises(ValueError, match="trained on texts"):
        model.predict(csr_matrix(numpy.eye(3)))
    with pytest.raises(ValueError, match="text 1 is of type int"):
        model.predict(["apple", 3])
    with pytest.raises(ValueError, match="threads is 0"):
        model.predict(["apple"], threads=0)
    with pytest.raises(ValueError, match="threshold"):
        model.predict("apple", threshold=float("nan"))
    with pytest.raises(ValueError, match="no probabilities"):
        model.predict_csr(["apple"], probabilities=True)
    with pytest.raises(ValueError, match="expected a string"):
        model.explain(3)
    assert model.predict([]) == [] and model.predict_csr([]).shape == (0, 8)
    assert model.predict("") != [] and model.predict("\0 \U0001f34e") != []


def test_features_need_as_many_columns_as_the_model(model):
    taught = elias_xmc.train(numpy.eye(3), numpy.eye(3), **QUICK)
    with pytest.raises(ValueError, match="5 feature columns"):
        taught.predict(numpy.eye(5))
    with pytest.raises(ValueError, match="trained on sparse features"):
        taught.predict(["a text"])
    with pytest.raises(ValueError, match="trained on sparse features"):
        taught.predict("a text")
    with pytest.raises(ValueError, match="trained on features"):
        taught.explain("a text")


def test_bad_settings(data, tmp_path):
    for bad, message in (
        ({"stage2_epochs": "x"}, "stage2.epochs"),
        ({"stage2_epochs": -1}, "stage2.epochs"),
        ({"ensemble_members": 0}, "ensemble.members"),
        ({"encoder_kind": "tree"}, "encoder.kind"),
        ({"ablation_weight_decay": float("nan")}, "ablation.weight_decay"),
        ({"stage2_epochs": [1]}, "found a list instead of an integer"),
        ({"preset": "none"}, "amazon-670k"),
        ({"encoder": "/nowhere/bert"}, "nowhere"),
        ({"preset": "frozen"}, "need a transformer"),
        ({"memory_limit": 1000}, "more than the limit"),
        ({"checkpoint_every": -1.0}, "checkpoint_every"),
        ({"resume": True}, "need out"),
        ({"progress": 3}, "progress: found int"),
        ({"format": "csv"}, "for a path"),
        ({"threads": 0}, "threads is 0"),
    ):
        with pytest.raises(EliasError, match=message):
            elias_xmc.train(*data, **{**QUICK, **bad})
    with pytest.raises(FileNotFoundError):
        elias_xmc.train(*data, config=tmp_path / "none.toml")


def test_a_directory_that_is_taken(data, model_path, tmp_path):
    with pytest.raises(ValueError, match="already exists: overwrite=True"):
        elias_xmc.train(*data, out=model_path, **QUICK)
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        elias_xmc.train(*data, out=tmp_path / "no" / "such" / "place", **QUICK)


def test_not_a_model(tmp_path):
    with pytest.raises(ValueError, match="not a model"):
        elias_xmc.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(EliasError, match="manifest"):
        elias_xmc.load(tmp_path)
    with pytest.raises(TypeError, match="elias_xmc.train"):
        elias_xmc.Model(None)


def test_a_model_of_a_newer_version(model_path, tmp_path):
    copy = tmp_path / "newer"
    shutil.copytree(model_path, copy)
    manifest = copy / "manifest.json"
    text = manifest.read_text()
    content = json.loads(text)
    version = content["version"] if "version" in content else content["format_version"]
    manifest.write_text(text.replace(f'version": {version}', f'version": {version + 98}', 1))
    with pytest.raises(EliasError, match="version|checksum"):
        elias_xmc.load(copy)


def test_a_damaged_file_is_named(model_path, tmp_path):
    copy = tmp_path / "damaged"
    shutil.copytree(model_path, copy)
    largest = max((f for f in copy.iterdir() if f.is_file()), key=lambda f: f.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 255
    largest.write_bytes(content)
    with pytest.raises(EliasError, match=largest.name):
        elias_xmc.load(copy, verify=True)


def test_a_model_that_is_deleted_while_it_is_mapped_still_answers(model_path, tmp_path):
    copy = tmp_path / "deleted"
    shutil.copytree(model_path, copy)
    model = elias_xmc.load(copy)
    expected = model.predict("red apple")
    shutil.rmtree(copy)
    assert model.predict(["red apple"] * 100)[99] == expected
    with pytest.raises(FileNotFoundError):
        model.inspect()
    import pickle

    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(model))


def test_a_panic_is_an_exception():
    # The border itself: python/src/border.rs turns panics into EliasError, and nothing below raises PanicException.
    code = """
import elias_xmc
for bad in (float("nan"), -1, 10**30, "", None, object()):
    try:
        elias_xmc.train(["a b", "c d"], [["x"], ["y"]], rates_labels=bad, stage2_epochs=1)
    except (elias_xmc.EliasError, TypeError, OverflowError):
        pass
"""
    subprocess.run([sys.executable, "-c", code], check=True)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.lists(st.one_of(st.text(max_size=8), st.none(), st.integers(-3, 3), st.lists(st.text(max_size=3), max_size=3)), max_size=5),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=3),
    st.sampled_from([numpy.eye(3), numpy.ones(3), numpy.array(["a"]), csr_matrix(numpy.eye(2)), csr_matrix((0, 0)), object()]),
)
fine = (EliasError, TypeError, ValueError, OverflowError, IndexError)
quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(texts=anything, k=st.one_of(st.integers(), anything), threshold=st.one_of(st.floats(), anything))
def test_any_prediction_returns_or_raises(model, texts, k, threshold):
    for call in (model.predict, model.predict_csr, model.predict_arrow):
        try:
            call(texts, k, threshold=threshold)
        except fine:
            pass


@settings(quick, max_examples=60)
@given(texts=anything, labels=anything)
def test_any_training_returns_or_raises(texts, labels):
    if isinstance(texts, str):
        return
    try:
        elias_xmc.train(texts, labels, stage1_epochs=1, stage2_epochs=1, encoder_dim=8)
    except fine:
        pass


@settings(quick, max_examples=60)
@given(
    texts=st.lists(st.text(max_size=20), min_size=1, max_size=6),
    labels=st.lists(st.lists(st.text(max_size=5), max_size=3), min_size=1, max_size=6),
)
def test_any_texts_and_labels_train_or_raise(texts, labels):
    n = min(len(texts), len(labels))
    try:
        model = elias_xmc.train(texts[:n], labels[:n], stage1_epochs=1, stage2_epochs=1, encoder_dim=8)
    except fine:
        return
    assert set(model.labels) == {label for row in labels[:n] for label in row}
    assert len(model.predict(texts)) == len(texts)


@quick
@given(truth=anything, scores=anything, train=anything, propensity=st.one_of(st.just("default"), st.text(max_size=5)))
def test_any_metrics_return_or_raise(truth, scores, train, propensity):
    try:
        elias_xmc.metrics(truth, scores, train, propensity=propensity)
    except (*fine, AttributeError):
        pass


@quick
@given(
    data=st.lists(st.floats(width=32), max_size=6),
    indices=st.lists(st.integers(-2, 6), max_size=6),
    indptr=st.lists(st.integers(-2, 8), min_size=1, max_size=5),
    n_cols=st.integers(0, 5),
)
def test_any_arrays_are_checked(model, data, indices, indptr, n_cols):
    # Straight into the Rust half, without SciPy's and our own sorting.
    arrays = (numpy.array(indptr, dtype="i4"), numpy.array(indices, dtype="i8"), numpy.array(data, dtype="f4"), n_cols)
    try:
        elias_xmc._elias.metrics(arrays, arrays)
        model._core.predict(arrays, options_of(1, 0.0))
    except fine:
        pass
