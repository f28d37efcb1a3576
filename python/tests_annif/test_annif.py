"""The backend inside a real Annif, by its commands."""

import json

import pytest
from conftest import PROJECTS, tsv, uri

import elias_xmc


def test_suggestions_are_the_right_subjects_best_first(trained):
    suggestions = trained.suggest("a sweet green cherry")
    assert {subject for subject, _ in suggestions[:2]} == {"fruit", "green"}
    scores = [score for _, score in suggestions]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_limit_and_threshold_are_honoured(trained):
    assert len(trained.suggest("a sweet green cherry", "--limit", "1")) == 1
    assert len(trained.suggest("a sweet green cherry", "--backend-param", "elias.limit=2")) == 2
    assert "expected an integer" in trained.fail("eval", "--backend-param", "elias.limit=many", "elias", "test.tsv")
    assert "expected an integer" in trained.fail("eval", "--backend-param", "elias.limit=0", "elias", "test.tsv")
    best = trained.suggest("a sweet green cherry")[0][1]
    assert trained.suggest("a sweet green cherry", "--threshold", str(best + 0.1)) == []


def test_evaluation_is_good_and_does_not_depend_on_jobs(trained):
    one = trained.evaluate("elias", "test.tsv")
    assert one["Precision@1"] > 0.95
    assert one["NDCG"] > 0.95
    assert one["Documents evaluated"] == 80
    assert trained.evaluate("--jobs", "2", "elias", "test.tsv") == one


def test_index_writes_a_file_of_suggestions_per_document(trained):
    trained.write("documents/one.txt", "a ripe red plum")
    trained.write("documents/two.txt", "a fast green bus")
    trained.run("index", "elias", "documents")
    first = {name: (trained.directory / f"documents/{name}.annif").read_text().splitlines()[:2] for name in ("one", "two")}
    assert {line.split("\t")[0] for line in first["one"]} == {f"<{uri('fruit')}>", f"<{uri('red')}>"}
    assert {line.split("\t")[0] for line in first["two"]} == {f"<{uri('vehicle')}>", f"<{uri('green')}>"}


def test_an_ensemble_can_use_the_backend(trained):
    assert trained.evaluate("--jobs", "2", "elias-ensemble", "test.tsv")["Precision@1"] > 0.95


def test_a_document_without_known_words_gets_no_suggestions(trained):
    assert trained.suggest("zzz") == []
    assert trained.suggest("") == []
    assert trained.suggest("zzz a ripe red plum zzz")


def test_documents_that_are_learned_change_the_next_suggestions(trained_copy):
    text = "a sweet red zeppelin"
    # Annif names an unknown subject once per process, so this one is not that of another test.
    trained_copy.write("more.tsv", tsv([(text, ["green"]), ("a dark comet", ["comet"])] * 3))

    def score():
        model = elias_xmc.load(trained_copy.directory / "data/projects/elias/elias-model")
        return {answer.label: answer.score for answer in model.predict(text)}[uri("green")]

    before = score()
    assert "not enabled" in trained_copy.fail("learn", "elias", "more.tsv")
    trained_copy.write("projects.cfg", PROJECTS.replace("[elias]\n", "[elias]\nallow_learn=true\n"))
    trained_copy.run("learn", "elias", "more.tsv")
    assert score() > before
    assert "green" in dict(trained_copy.suggest(text))
    trained_copy.write("unknown.tsv", tsv([("a dark comet", ["comet"])]))
    assert "Cannot learn" in trained_copy.fail("learn", "elias", "unknown.tsv")


def test_an_untrained_project_is_reported(annif):
    assert "not trained" in annif.fail("suggest", "elias", "train.tsv").lower()
    assert "False" in annif.run("list-projects").splitlines()[2]


def test_an_unknown_subject_is_passed_over(annif):
    annif.write("train.tsv", (annif.directory / "train.tsv").read_text() + tsv([("a blue moon", ["moon"])]))
    result = annif.attempt("train", "elias", "train.tsv")
    assert result.exit_code == 0
    assert f"Unknown subject URI <{uri('moon')}>" in result.stderr
    points = [json.loads(line) for line in open(annif.directory / "data/projects/elias/elias-train.jsonl")]
    assert len(points) == 200
    assert {label for point in points for label in point["labels"]} <= {uri(s) for s in ("fruit", "vehicle", "red", "green")}


def test_a_subject_that_left_the_vocabulary_is_not_suggested(trained_copy):
    trained_copy.write("things.csv", (trained_copy.directory / "things.csv").read_text().replace(f"{uri('fruit')},fruit,\n", ""))
    trained_copy.run("load-vocab", "things", "things.csv")
    assert "fruit" not in dict(trained_copy.suggest("a sweet green cherry"))


def test_a_vocabulary_in_another_order_gives_the_same_suggestions(trained_copy):
    before = trained_copy.suggest("a sweet green cherry")
    header, *rows = (trained_copy.directory / "things.csv").read_text().splitlines()
    trained_copy.write("things.csv", "\n".join([header, *reversed(rows)]) + "\n")
    trained_copy.run("load-vocab", "--force", "things", "things.csv")
    assert trained_copy.suggest("a sweet green cherry") == before


def test_an_empty_vocabulary_is_an_error_and_leaves_nothing(annif):
    assert "subject of the vocabulary" in annif.fail("train", "empty-vocabulary", "train.tsv")
    assert list((annif.directory / "data/projects/empty-vocabulary").iterdir()) == []
    assert "subject file" in annif.fail("train", "nothing-loaded", "train.tsv")


def test_an_empty_corpus_is_an_error(annif):
    annif.write("none.tsv", "")
    assert "no documents" in annif.fail("train", "elias", "none.tsv")


def test_a_cached_corpus_needs_an_earlier_run(annif):
    assert "train once without --cached" in annif.fail("train", "--cached", "elias")


def test_a_cached_corpus_is_used_again(trained_copy):
    before = trained_copy.suggest("a sweet green cherry")
    (trained_copy.directory / "train.tsv").unlink()
    trained_copy.run("train", "--cached", "--jobs", "2", "elias")
    assert trained_copy.suggest("a sweet green cherry") == before
    trained_copy.run("train", "--cached", "--backend-param", "elias.stage2.epochs=1", "elias")
    assert trained_copy.suggest("a sweet green cherry") != before


def test_a_failed_training_leaves_the_old_model(trained_copy):
    before = trained_copy.suggest("a sweet green cherry")
    trained_copy.fail("train", "--cached", "--backend-param", "elias.stage2.epochs=six", "elias")
    assert trained_copy.suggest("a sweet green cherry") == before


def test_a_damaged_model_is_reported(trained_copy):
    manifest = trained_copy.directory / "data/projects/elias/elias-model/manifest.json"
    manifest.write_text(manifest.read_text()[:-100])
    assert "train the project again" in trained_copy.fail("suggest", "elias", "test.tsv")


@pytest.mark.parametrize(
    "project, words",
    [
        ("unknown-setting", ["'stage2.epoch'", "did you mean 'stage2.epochs'?"]),
        ("wrong-value", ["stage2.epochs", '"six"']),
        ("misspelt", ["limt", "did you mean 'limit'?"]),
    ],
)
def test_a_mistake_in_the_settings_is_named(annif, project, words):
    error = annif.fail("train", project, "train.tsv")
    assert all(word in error for word in words), error
    assert not (annif.directory / "data/projects" / project / "elias-model").exists()


def test_options_of_training_are_passed_on(annif):
    annif.write("settings.toml", "[stage2]\nepoch = 6\n")
    for option, word in [("preset=fast-and-good", "fast-and-good"), ("encoder=no-such-bert", "no-such-bert"), ("config=settings.toml", "epoch")]:
        assert word in annif.fail("train", "--backend-param", f"elias.{option}", "elias", "train.tsv")


def test_settings_of_a_toml_file_may_be_tables(annif):
    (annif.directory / "projects.cfg").unlink()
    project = '[elias]\nlanguage = "en"\nbackend = "elias"\nvocab = "things"\n'
    annif.write("projects.toml", project + '"stage1.epochs" = 20\n[elias.stage2]\nepochs = 6\n[elias.rates]\nencoder = 0.003\n')
    annif.run("train", "elias", "train.tsv")
    assert {subject for subject, _ in annif.suggest("a sweet green cherry")[:2]} == {"fruit", "green"}
    annif.write("projects.toml", project + "[elias.stage2]\nepoch = 6\n")
    assert "epoch" in annif.fail("train", "--cached", "elias")
