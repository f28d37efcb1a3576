"""The backend's parts that the command line does not show."""

import json
import multiprocessing

import pytest
from annif.corpus import Document, DocumentList, SubjectSet
from annif.parallel import ProjectSuggestMap
from annif.registry import AnnifRegistry
from annif.suggestion import SuggestionBatch

import elias_xmc
from elias_xmc.annif import EliasBackend


@pytest.fixture
def project(trained, monkeypatch):
    monkeypatch.chdir(trained.directory)
    return AnnifRegistry("projects.cfg", "data", init_projects=False).get_project("elias")


def test_the_order_survives_equal_and_zero_probabilities(project):
    # Against the order of the vocabulary, in which Annif leaves equal scores.
    labels = [subject.uri for subject in project.subjects][::-1]
    for probabilities in ([1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]):
        answers = [elias_xmc.Prediction(label, 0.5, p) for label, p in zip(labels, probabilities)]
        batch = SuggestionBatch.from_sequence([list(project.backend._suggestions(answers))], project.subjects)
        assert [suggestion.subject_id for suggestion in batch[0]] == [3, 2, 1, 0]
        assert [s.score for s in batch[0]] == pytest.approx(probabilities, abs=2e-6)


def test_scores_are_taken_where_there_are_no_probabilities(project):
    answers = [elias_xmc.Prediction(subject.uri, 0.25, None) for subject in project.subjects]
    assert next(project.backend._suggestions(answers)).score == 0.25


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_answer_like_their_parent(project, method):
    documents = [Document(text="a ripe red plum"), Document(text="zzz"), Document(text="an old green truck")]
    expected = project.suggest(documents).array.toarray()
    project.initialize(parallel=True)
    suggest = ProjectSuggestMap(project.registry, ["elias"], None, 10, 0.0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for hits, _ in pool.map(suggest.suggest_batch, [documents] * 4):
            assert (hits["elias"].array.toarray() == expected).all()


def test_an_unfinished_training_is_not_a_trained_project(project, tmp_path):
    backend = EliasBackend("elias", {}, project)
    backend.datadir = tmp_path
    (tmp_path / "elias-model" / "training").mkdir(parents=True)
    (tmp_path / "elias-model" / "training" / "checkpoint").write_text("")
    assert not backend.is_trained
    assert backend.modification_time is None


def test_the_model_learns_names_and_synonyms_of_the_projects_language(annif, monkeypatch):
    annif.write(
        "things.ttl",
        """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://example.org/fruit> a skos:Concept ; skos:prefLabel "fruit"@en, "Obst"@de ; skos:altLabel "pome"@en, "Frucht"@de .
<http://example.org/red> a skos:Concept ; skos:prefLabel "red"@en .
""",
    )
    annif.run("load-vocab", "--force", "things", "things.ttl")
    monkeypatch.chdir(annif.directory)
    project = AnnifRegistry("projects.cfg", "data", init_projects=False).get_project("elias")
    names = project.backend._subject_names()
    assert names == {"http://example.org/fruit": "fruit; pome", "http://example.org/red": "red"}


class Stemmer:
    """An analyzer that needs no data of NLTK."""

    def tokenize_words(self, text):
        return [word.rstrip("s") for word in text.lower().split()]


def test_an_analyzer_makes_the_words_of_texts_and_names(annif, monkeypatch):
    monkeypatch.chdir(annif.directory)
    project = AnnifRegistry("projects.cfg", "data", init_projects=False).get_project("elias")
    project.analyzer_spec, project._analyzer = "stemmer", Stemmer()
    kinds = [("Ripe PLUMS", 0), ("Sweet Plums", 0), ("Fast TRUCKS", 1), ("Old Trucks", 1)]
    documents = [Document(text=text, subject_set=SubjectSet([subject])) for text, subject in kinds * 10]
    project.train(DocumentList(documents))
    points = [json.loads(line) for line in open("data/projects/elias/elias-train.jsonl", encoding="utf-8")]
    assert points[0]["text"] == "ripe plum"
    assert project.backend._subject_names()["http://example.org/fruit"] == "fruit"
    plum, trucks, nothing = project.suggest([Document(text=text) for text in ("PLUM", "truckss", "plumage")])
    assert next(iter(plum)).subject_id == 0
    assert next(iter(trucks)).subject_id == 1
    assert len(nothing) == 0
