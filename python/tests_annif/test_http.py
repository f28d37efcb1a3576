"""Annif's own `http` backend against `elias serve`."""

import os
import subprocess
from pathlib import Path

import pytest

BINARY = os.environ.get("ELIAS_BINARY", Path(__file__).parents[2] / "target/release/elias")


@pytest.fixture
def served(trained, tmp_path):
    """Annif with a project `served` that asks a service for the suggestions of the project `elias`."""
    model = trained.directory / "data/projects/elias/elias-model"
    command = [BINARY, "serve", "--model", f"subjects={model}", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            line = next(line for line in server.stderr if line.startswith("listening on "))
            url = line.removeprefix("listening on ").strip()
            annif = trained.copy(tmp_path)
            project = "[{}]\nlanguage=en\nbackend=http\nvocab=things\nendpoint={}/v1/annif/{}/suggest\n"
            projects = [project.format(name, url, model) for name, model in (("served", "subjects"), ("unknown", "none"))]
            annif.write("projects.cfg", (annif.directory / "projects.cfg").read_text() + "\n".join(projects))
            yield annif
        finally:
            server.terminate()
    assert server.returncode == 0


def suggestions(annif, project, text, *arguments):
    lines = annif.run("suggest", *arguments, project, text=text).splitlines()
    return [(line.split("\t")[0], float(line.split("\t")[-1])) for line in lines]


def test_the_http_backend_suggests_what_the_elias_backend_does(served):
    for text in ("a sweet green cherry", "an old red truck"):
        own, asked = (suggestions(served, project, text) for project in ("elias", "served"))
        assert [uri for uri, _ in asked] == [uri for uri, _ in own]
        assert [score for _, score in asked] == pytest.approx([score for _, score in own], abs=1e-4)
    assert len(suggestions(served, "served", "a sweet green cherry", "--limit", "1")) == 1


def test_the_http_backend_sees_a_trained_project_and_can_be_evaluated(served):
    assert served.evaluate("served", "test.tsv")["Precision@1"] > 0.95
    shown = served.run("show-project", "served")
    assert "True" in shown and "20" in shown.split("Modification time:")[1]


def test_a_model_that_is_not_served_is_reported(served):
    # Annif only warns of a project that it cannot ask.
    shown = served.attempt("show-project", "unknown")
    assert "404" in shown.stderr and "True" not in shown.stdout
