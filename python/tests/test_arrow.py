"""Arrow in and out, by the PyCapsule interface."""

from __future__ import annotations

import pytest

pyarrow = pytest.importorskip("pyarrow")
polars = pytest.importorskip("polars")

TEXTS = ["ripe red apple", "fast green car", "", "loud blue piano ♪"]


def check(answers, model, texts=TEXTS, k=3):
    expected = model.predict(texts, k)
    assert answers["labels"].to_pylist() == [[a.label for a in row] for row in expected]
    assert answers["scores"].to_pylist() == [[a.score for a in row] for row in expected]
    assert answers["probabilities"].to_pylist() == [[a.probability for a in row] for row in expected]


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()])
def test_a_record_batch_goes_in_and_comes_out(model, kind):
    batch = pyarrow.record_batch({"id": [1, 2, 3, 4], "text": pyarrow.array(TEXTS, kind)})
    answers = model.predict_arrow(batch, k=3)
    assert isinstance(answers, pyarrow.RecordBatch)
    answers.validate(full=True)
    check(answers, model)


def test_a_slice_a_table_and_an_array(model):
    batch = pyarrow.record_batch({"words": TEXTS, "id": [1, 2, 3, 4]})
    check(model.predict_arrow(batch.slice(1, 2), k=3, column="words"), model, TEXTS[1:3])
    table = pyarrow.table({"text": pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]])})
    check(model.predict_arrow(table, k=3), model)
    check(model.predict_arrow(pyarrow.array(TEXTS), k=3), model)
    check(model.predict_arrow(pyarrow.chunked_array([TEXTS]), k=3), model)
    check(model.predict_arrow(batch.slice(0, 0), k=3, column="words"), model, [])


def test_polars_goes_in_and_comes_out(model):
    frame = polars.DataFrame({"text": TEXTS, "n": range(4)})
    answers = model.predict_arrow(frame, k=3)
    assert isinstance(answers, polars.DataFrame)
    check(answers.to_arrow(), model)
    check(model.predict_arrow(polars.Series(TEXTS), k=3).to_arrow(), model)


def test_anything_else_gets_the_interface(model):
    class Mine:
        def __init__(self, batch):
            self.batch = batch

        def __arrow_c_array__(self, requested_schema=None):
            return self.batch.__arrow_c_array__(requested_schema)

    answers = model.predict_arrow(Mine(pyarrow.record_batch({"text": TEXTS})), k=3)
    assert len(answers) == 4
    check(pyarrow.record_batch(answers), model)
    check(pyarrow.table(answers), model)
    assert pyarrow.schema(answers).names == ["labels", "scores", "probabilities"]


def test_a_calibrated_model_has_probabilities(calibrated):
    answers = model_answers = calibrated.predict_arrow(pyarrow.record_batch({"text": TEXTS}), k=3)
    check(answers, calibrated)
    assert all(p is not None for row in model_answers["probabilities"].to_pylist() for p in row)


def test_bad_batches(model):
    for bad, message in (
        (pyarrow.record_batch({"a": TEXTS, "b": TEXTS}), "no column text; the columns are a, b"),
        (pyarrow.record_batch({"text": [1, 2]}), "type Int64, expected strings"),
        (pyarrow.record_batch({"text": ["a", None]}), "row 1 has no text"),
        (["a list"], "found list, expected Arrow data"),
        (None, "found NoneType"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict_arrow(bad)
    invalid = pyarrow.Array.from_buffers(
        pyarrow.string(), 1, [None, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(ValueError, match="(?i)utf"):
        model.predict_arrow(invalid)
