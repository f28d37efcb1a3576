"""What users call: train, load, predict, explain, inspect, evaluate, report, metrics."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import numpy
import pytest
from conftest import QUICK, make_data
from scipy.sparse import coo_matrix, csr_array, csr_matrix

import elias_xmc


def labels_of(answers):
    return [answer.label for answer in answers]


def test_answers_are_the_same_one_by_one_in_a_list_and_as_a_matrix(model, data):
    texts = data[0][:20]
    lists = model.predict(texts, k=4)
    assert lists == [model.predict(text, k=4) for text in texts]
    matrix = model.predict_csr(texts, k=4)
    assert matrix.shape == (20, model.n_labels) and matrix.has_canonical_format
    for row, answers in enumerate(lists):
        for answer in answers:
            assert matrix[row, model.labels.index(answer.label)] == numpy.float32(answer.score)
    assert matrix.nnz == sum(map(len, lists))


def test_answers_are_right(model, data):
    figures = model.evaluate(*data)
    assert figures["p@1"] > 90 and figures["n_points"] == 120
    assert "fruit" in labels_of(model.predict("a ripe plum and a pear", k=2))


def test_predictions_are_named_tuples_best_first(model):
    answers = model.predict("fast red car", k=8)
    assert answers == sorted(answers, key=lambda answer: -answer.score)
    label, score, probability = answers[0]
    assert isinstance(label, str) and isinstance(score, float) and probability is None


def test_a_loaded_model_answers_as_the_trained_one(model, memory_model, data):
    assert model.predict(data[0]) == memory_model.predict(data[0])


def test_allowed_and_denied_labels_by_name_and_number(model, data):
    texts = data[0][:5]
    red = model.labels.index("red")
    for answers in model.predict(texts, allow=["fruit", numpy.int64(red), "red"]):
        assert sorted(labels_of(answers)) == ["fruit", "red"]
    for answers in model.predict(texts, deny={"fruit", red}):
        assert answers and not {"fruit", "red"} & set(labels_of(answers))
    matrix = model.predict_csr(texts, allow=iter(["fruit"]))
    assert set(matrix.indices) == {model.labels.index("fruit")}
    for answers in model.predict(texts, thresholds={"fruit": 1.0, red: 0.0}):
        assert "fruit" not in labels_of(answers)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allow": []}, "allow: found no labels"),
        ({"allow": ["pear tree", "plum"]}, 'allow: "pear tree" and another are not among the labels'),
        ({"deny": [-1]}, "deny: no label has the number -1"),
        ({"deny": [10**6]}, 'deny: "#1000000" is not among'),
        ({"allow": "fruit"}, "allow: expected labels, found a single str"),
        ({"allow": 7}, "allow: expected labels, found int"),
        ({"deny": None}, "deny: expected labels, found NoneType"),
        ({"thresholds": ["fruit"]}, "thresholds: expected a mapping"),
        ({"thresholds": {"fruit": 2}}, "thresholds: found 2, expected a number from 0 to 1"),
    ],
)
def test_a_list_of_labels_with_a_mistake_is_named(model, options, words):
    with pytest.raises(elias_xmc.EliasError, match=re.escape(words)) as caught:
        model.predict("a ripe plum", **options)
    assert isinstance(caught.value, (TypeError, ValueError))


def test_probabilities_and_thresholds(calibrated):
    texts = make_data(30, seed=7)[0]
    assert calibrated.is_calibrated
    for answers in calibrated.predict(texts, k=5):
        assert all(0 <= answer.probability <= 1 for answer in answers)
    sure = calibrated.predict(texts, k=5, threshold=0.6)
    assert all(answer.probability >= 0.6 for answers in sure for answer in answers)
    matrix = calibrated.predict_csr(texts, k=5, probabilities=True)
    assert matrix.max() <= 1 and matrix.max() == max(a.probability for row in calibrated.predict(texts, 5) for a in row)
    assert calibrated.predict_csr(texts, k=5, threshold=0.6).nnz == sum(map(len, sure))


def test_stages_answer(model):
    assert model.predict("red apple", k=3, stage="stage2") != []
    with pytest.raises(ValueError, match="unknown stage"):
        model.predict("red apple", stage="stage3")


def test_threads_change_nothing(model, data):
    assert model.predict(data[0], threads=1) == model.predict(data[0], threads=3) == model.predict(data[0])


def test_explain_and_inspect_are_those_of_the_command(model):
    explanation = model.explain("a ripe red apple", k=2)
    assert len(explanation["answers"]) == 2 and explanation["answers"][0]["members"]
    inspection = model.inspect()
    assert inspection["n_labels"] == 8 and inspection["bytes"] > 0
    assert inspection["index"][0]["n_unreachable"] == 0


def test_a_model_in_memory_can_be_inspected_saved_and_not_reported(memory_model, data, tmp_path):
    assert memory_model.path is None and memory_model.inspect()["files"] is None
    with pytest.raises(ValueError, match="on disk"):
        memory_model.report(tmp_path / "report.html", *data)
    saved = memory_model.save(tmp_path / "saved")
    assert saved.path == str(tmp_path / "saved")
    assert saved.predict("red apple") == memory_model.predict("red apple")
    with pytest.raises(elias_xmc.EliasError, match="holds a model already"):
        memory_model.save(tmp_path / "saved")
    memory_model.save(tmp_path / "saved", overwrite=True)


def test_a_report_is_one_page(model_path, data, tmp_path):
    out = tmp_path / "report.html"
    elias_xmc.load(model_path).report(out, *make_data(20, seed=3), train=data)
    assert out.read_text().startswith("<!doctype html>")
    with pytest.raises(ValueError, match="exists"):
        elias_xmc.load(model_path).report(out, *data)


def test_evaluation_has_the_keys_of_the_command(model, data):
    figures = model.evaluate(*data, by_decile=True, latency=True)
    assert list(figures)[:6] == ["p@1", "p@3", "p@5", "ndcg@1", "ndcg@3", "ndcg@5"]
    assert len(figures["by_decile"]) == 10 and figures["ms_per_query_p50"] > 0
    assert model.evaluate(*data, stage="stage2")["n_labels"] == 8


def test_evaluation_counts_labels_that_the_model_does_not_know(model):
    figures = model.evaluate(["red apple"], [["fruit", "new label"]])
    assert figures["r@5"] == 50 and figures["n_labels"] == 9


def test_metrics_equal_those_of_evaluate(model, data):
    texts, labels = make_data(40, seed=5)
    matrix = lambda rows: csr_matrix([[label in row for label in model.labels] for row in rows], dtype=numpy.int8)
    found = elias_xmc.metrics(matrix(labels), model.predict_csr(texts, k=100), matrix(data[1]))
    figures = model.evaluate(texts, labels)
    for name in ("p@1", "p@5", "ndcg@3", "psp@1", "psp@5", "r@1", "r@100"):
        assert found[name] == pytest.approx(figures[name]), name
    assert "psp@1" not in elias_xmc.metrics(matrix(labels), model.predict_csr(texts))
    ignored = elias_xmc.metrics(matrix(labels[:1]), model.predict_csr(texts[:1]), filter=[(0, at) for at in range(8)])
    assert ignored["n_skipped"] == 1


def test_metrics_are_measured_where_asked_and_equal_those_of_scikit_learn():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    rng = numpy.random.default_rng(1)
    truth = rng.random((50, 20)) < 0.2
    truth[numpy.arange(50), rng.integers(0, 20, 50)] = True
    scores = rng.permutation(1000).reshape(50, 20).astype(numpy.float32) / 1000 + 0.0001
    found = elias_xmc.metrics(truth, scores, at=[2, 7])
    first = lambda k: scores >= -numpy.sort(-scores, axis=1)[:, k - 1 : k]
    for k in (2, 7):
        precision = sklearn_metrics.precision_score(truth, first(k), average="samples")
        recall = sklearn_metrics.recall_score(truth, first(k), average="samples")
        assert found[f"f1@{k}"] == pytest.approx(200 * precision * recall / (precision + recall))
        assert found[f"point_f1@{k}"] == pytest.approx(100 * sklearn_metrics.f1_score(truth, first(k), average="samples"))
        assert found[f"ndcg@{k}"] == pytest.approx(100 * sklearn_metrics.ndcg_score(truth, scores, k=k))
    best = found["at_best_threshold"]
    answers = scores >= numpy.float32(best["threshold"])
    assert best["micro_f1"] == pytest.approx(100 * sklearn_metrics.f1_score(truth, answers, average="micro"))
    assert best["macro_f1"] == pytest.approx(100 * sklearn_metrics.f1_score(truth, answers, average="macro", zero_division=0))
    # Two scores per row measure nothing beyond.
    few = elias_xmc.metrics(truth, numpy.where(first(2), scores, 0), at=[2, 7])
    assert few["p@2"] == found["p@2"] and "p@7" not in few and "r_precision" not in few
    with pytest.raises(ValueError, match="at least 1"):
        elias_xmc.metrics(truth, scores, at=[0])


def test_evaluation_by_label_and_at_a_threshold(model, data):
    figures = model.evaluate(*data, at=[2, 4], threshold=0.5, by_label=True)
    assert "p@4" in figures and "p@1" not in figures
    assert figures["at_threshold"]["threshold"] == 0.5
    assert {row["label"] for row in figures["by_label"]} >= {name for names in data[1] for name in names}
    assert sum(row["support"] for row in figures["by_label"]) == sum(len(set(names)) for names in data[1])
    with pytest.raises(ValueError, match="from 0 to 1"):
        model.evaluate(*data, threshold=2)


def test_vectors_of_texts_and_labels(model):
    texts, labels = model.embed(["red apple", "blue sky"]), model.embed_labels()
    assert texts.shape == (2, labels.shape[1]) and len(labels) == len(model.labels) and texts.dtype == numpy.float32
    assert (model.embed("red apple") == texts[:1]).all()
    assert model.embed([]).shape == (0, labels.shape[1])


@pytest.mark.parametrize("synonyms", [[("poire", "pear")], {"poire": "pear"}, "file"])
def test_synonyms_are_kept_with_the_model(tmp_path, synonyms):
    if synonyms == "file":
        synonyms = tmp_path / "words.tsv"
        synonyms.write_text("poire\tpear\n")
    texts = [f"{word} {n}" for n in range(20) for word in ("pear", "car")]
    model = elias_xmc.train(texts, [["fruit"], ["vehicle"]] * 20, synonyms=synonyms, **QUICK)
    model = model.save(tmp_path / "model")
    assert model.predict("poire", 1)[0].label == "fruit"
    with pytest.raises(ValueError, match="synonyms"):
        elias_xmc.train(texts, [["fruit"], ["vehicle"]] * 20, synonyms=[("poire",)], **QUICK)


def test_vectors_of_words_know_words_that_no_text_has(tmp_path):
    words = tmp_path / "words.vec"
    words.write_text("pear 1 0\nplum 1 0.1\ncar 0 1\ntram 0.1 1\n")
    texts = [f"{word} {n}" for n in range(20) for word in ("pear", "car")]
    model = elias_xmc.train(texts, [["fruit"], ["vehicle"]] * 20, embeddings=words, **QUICK)
    assert [answers[0].label for answers in model.predict(["plum", "tram"])] == ["fruit", "vehicle"]


def test_embeddings_of_texts_are_read_beside_their_words(tmp_path):
    dense = numpy.array([[1.0, 0.0], [0.0, 1.0]] * 30)
    texts, labels = ["text"] * 60, [["fruit"], ["vehicle"]] * 30
    model = elias_xmc.train(texts, labels, X_dense=dense, out=tmp_path / "model", **QUICK)
    answers = model.predict(["text", "text"], X_dense=dense[:2].astype(numpy.float16))
    assert [of_text[0].label for of_text in answers] == ["fruit", "vehicle"]
    assert model.predict("text", X_dense=dense[1:2])[0].label == "vehicle"
    assert model.predict_csr(["text"], X_dense=dense[:1]).shape == (1, 2)
    assert model.evaluate(texts, labels, X_dense=dense)["p@1"] == 100
    with pytest.raises(ValueError, match="give them with the texts"):
        model.predict(["text"])
    for bad in (dense[:1], dense[0], [["a"]], dense[:2, :1]):
        with pytest.raises(ValueError):
            model.predict(["text", "text"], X_dense=bad)
    with pytest.raises(ValueError, match="embeddings"):
        elias_xmc.train(texts, labels, X_dense=dense[:3], **QUICK)


@pytest.mark.parametrize("index", [numpy.int32, numpy.int64])
@pytest.mark.parametrize("kind", [csr_matrix, csr_array, coo_matrix, numpy.asarray])
def test_features_and_label_matrices_of_any_kind_train(index, kind):
    rng = numpy.random.default_rng(0)
    y = rng.integers(0, 4, 80)
    dense = rng.random((80, 12)) * 0.1
    dense[numpy.arange(80), y] += 1
    X, Y = csr_matrix(dense), csr_matrix((numpy.ones(80), (numpy.arange(80), y)), shape=(80, 4))
    for matrix in (X, Y):
        matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    X = kind(dense) if kind is numpy.asarray else kind(X)
    names = ["a", "b", "c", "d"]
    model = elias_xmc.train(X, Y, label_names=names, **{**QUICK, "stage2_epochs": 12})
    assert not model.takes_texts and model.labels == names
    assert model.evaluate(X, Y)["p@1"] > 80
    assert labels_of(row[0] for row in model.predict(X, k=1))[0] in names


def test_unsorted_rows_and_duplicates_are_summed():
    unsorted = csr_matrix((numpy.array([1.0, 2.0, 3.0]), numpy.array([2, 0, 2]), numpy.array([0, 3])), shape=(1, 3))
    kept = unsorted.indices.copy()
    truth = csr_matrix([[0, 0, 1]])
    assert elias_xmc.metrics(truth, unsorted)["p@1"] == 100
    assert (unsorted.indices == kept).all()


def test_labels_can_be_names_sets_dicts_integers_and_one_name(tmp_path):
    texts = ["ripe apple", "fast car", "ripe pear", "fast bike"]
    for labels in (
        [{"fruit"}, {"vehicle"}, ("fruit",), numpy.array(["vehicle"])],
        ["fruit", "vehicle", "fruit", "vehicle"],
        [{"fruit": 1.0}, {"vehicle": 0.5}, {"fruit": 0.2, "vehicle": 0.0}, {"vehicle": 1}],
    ):
        model = elias_xmc.train(texts, labels, stage1_epochs=30, **{k: v for k, v in QUICK.items() if k != "stage1_epochs"})
        assert model.labels == ["fruit", "vehicle"]
        assert labels_of(model.predict("ripe plum", k=1)) == ["fruit"]
    assert elias_xmc.train(texts, [1, [2], [numpy.int64(1)], 2], **QUICK).labels == ["1", "2"]


def test_columns_of_pandas_polars_and_arrow(data, memory_model):
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    texts, labels = data
    expected = memory_model.predict(texts)
    frame = pandas.DataFrame({"text": texts, "labels": labels}, index=range(5, 125))
    for column, targets in (
        (frame["text"], frame["labels"]),
        (polars.Series(texts), polars.Series(labels)),
        (pyarrow.array(texts), pyarrow.array(labels)),
        (tuple(texts), iter(labels)),
        (numpy.array(texts), labels),
    ):
        model = elias_xmc.train(column, targets, **QUICK)
        assert model.predict(texts) == expected
        assert memory_model.predict(column) == expected


def test_a_path_in_any_format_trains(data, tmp_path, memory_model):
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"text": t, "labels": l}) + "\n" for t, l in zip(*data)))
    assert elias_xmc.train(path, **QUICK).predict(data[0]) == memory_model.predict(data[0])
    table = tmp_path / "train.csv"
    table.write_text("words,tags\n" + "".join(f"{t},{'+'.join(l)}\n" for t, l in zip(*data)))
    options = {"text_column": "words", "label_column": "tags", "label_separator": "+"}
    model = elias_xmc.train(str(table), **options, **QUICK)
    assert sorted(model.labels) == sorted(memory_model.labels)
    assert model.evaluate(table, **options)["n_points"] == 120


def test_settings_come_by_keyword_and_from_a_file(data, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[encoder]\ndim = 16\n[stage1]\nepochs = 1\n[stage2]\nepochs = 1\n[final_score]\nkind = 'product'\n")
    config = elias_xmc.train(*data, config=file, encoder_dim=24, rates_labels=[0.01, 0.02]).inspect()["config"]
    assert config["encoder"]["dim"] == 24 and config["stage1"]["epochs"] == 1
    assert config["rates"]["labels"] == pytest.approx([0.01, 0.02])
    assert elias_xmc.config().count("\n[stage") == 2 and "transformer" in elias_xmc.config("frozen")


def test_every_setting_is_a_keyword():
    from elias_xmc._settings import keywords

    text = elias_xmc.config()
    lines = [line for line in text.splitlines() if re.match(r"(# )?\w+ =", line)]
    assert len(keywords()) == len(lines) >= 50
    for keyword in ("features_max_features", "index_n_clusters", "rates_encoder", "hold_out_n_points", "ablation_pooling"):
        assert keyword in keywords()
    model = elias_xmc.train(["a b", "c d"], [["x"], ["y"]], features_max_features=3, index_n_clusters=2, stage2_epochs=1)
    assert model.inspect()["n_features"] == 3 and model.inspect()["n_clusters"] == 2


def test_events_reach_a_callback_and_bars_are_drawn(data, capfd):
    events = []
    elias_xmc.train(*data, progress=events.append, **QUICK)
    kinds = [event["event"] for event in events]
    assert {"phase", "step", "epoch"} <= set(kinds)
    assert [e["epoch"] for e in events if e["event"] == "epoch" and e["phase"] == "stage 2"] == [1, 2, 3, 4]
    elias_xmc.train(*data, progress=True, **QUICK)
    assert "stage 2: " in capfd.readouterr().err


def test_bars_are_redrawn_in_a_terminal(monkeypatch):
    import io

    from elias_xmc import _progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(_progress, "REDRAW", 0)
    stream = Terminal()
    bars = _progress.Bars(stream)
    bars({"event": "phase", "phase": "stage 1", "n_steps": 4})
    for step in (1, 2):
        bars({"event": "step", "phase": "stage 1", "step": step, "n_points": 1, "loss": 0.5})
    bars({"event": "member", "member": 1, "n_members": 2})
    bars.close()
    assert "50 % stage 1: 2/4, loss 0.500" in stream.getvalue() and stream.getvalue().endswith("\n")


def test_what_a_callback_raises_stops_the_training(data):
    def complain(event):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        elias_xmc.train(*data, progress=complain, **{**QUICK, "stage2_epochs": 10_000})


def test_validation_reaches_the_callback(data):
    events = []
    elias_xmc.train(*data, validation=make_data(20, seed=9), progress=events.append, **QUICK)
    assert any(event["event"] == "validation" and event["p@1"] > 50 for event in events)


def test_label_descriptions_are_read(data, tmp_path):
    file = tmp_path / "labels.jsonl"
    file.write_text('{"label": "fruit", "text": "mango papaya"}\n')
    model = elias_xmc.train(*data, label_file=file, **QUICK)
    assert model.inspect()["config"]["train"]["label_texts"] == "on"


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = """
import sys, elias_xmc
model = elias_xmc.train(["a apple", "b car"], [["x"], ["y"]], stage2_epochs=1)
model.predict("apple"); model.predict(["apple", "car"])
heavy = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "polars"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_what_the_documents_show_runs(document, tmp_path, monkeypatch):
    text = (pathlib.Path(__file__).parents[2] / document).read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), document, "exec"), {"__name__": document})


def test_models_become_one_ensemble(data, model_path, tmp_path):
    # Texts of so few words are near duplicates, and the first model says whether those calibrate.
    settings = {**QUICK, "train_seed": 7, "hold_out_near_duplicates": 2.0}
    other = elias_xmc.train(*data, out=tmp_path / "other", **settings)
    merged = elias_xmc.merge([model_path, other], tmp_path / "merged")
    assert merged.inspect()["n_members"] == 2 and not merged.is_calibrated
    score = {answer.label: answer.score for answer in merged.predict("ripe red apple", k=8)}
    alone = [elias_xmc.load(path).predict("ripe red apple", k=8) for path in (model_path, tmp_path / "other")]
    for label in ("fruit", "red"):
        mean = sum(answer.score for answers in alone for answer in answers if answer.label == label) / 2
        assert score[label] == pytest.approx(mean, abs=1e-6)
    calibrated = elias_xmc.merge([other, model_path], tmp_path / "merged", calibrate=make_data(600, seed=9), overwrite=True)
    assert calibrated.is_calibrated
    for models, out, options, message in (
        ([model_path, other], tmp_path / "merged", {}, "give overwrite=True"),
        ([model_path, other], model_path, {"overwrite": True}, "an input and an output"),
        ([model_path, other], tmp_path / "new", {"calibrate": data}, "what the model was trained on"),
        ([model_path, model_path], tmp_path / "new", {}, "the same member"),
    ):
        with pytest.raises(ValueError, match=message):
            elias_xmc.merge(models, out, **options)
    with pytest.raises(elias_xmc.EliasError, match="expected at least two"):
        elias_xmc.merge([model_path], tmp_path / "new")
    assert not (tmp_path / "new").exists()
