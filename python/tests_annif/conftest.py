"""A directory with a vocabulary, corpora and projects, and Annif's command line run in it."""

import os
import random
import shutil

import pytest
from annif.cli import cli
from click.testing import CliRunner

SUBJECTS = ["fruit", "vehicle", "red", "green"]
WORDS = {
    "fruit": [["ripe", "sweet"], ["apple", "pear", "plum", "cherry"]],
    "vehicle": [["fast", "old"], ["car", "bike", "bus", "truck"]],
}
PROJECTS = """
[elias]
language=en
backend=elias
vocab=things
stage1.epochs=20
stage2.epochs=6

[elias-ensemble]
language=en
backend=ensemble
vocab=things
sources=elias

[unknown-setting]
language=en
backend=elias
vocab=things
stage2.epoch=6

[wrong-value]
language=en
backend=elias
vocab=things
stage2.epochs=six

[misspelt]
language=en
backend=elias
vocab=things
limt=5

[nothing-loaded]
language=en
backend=elias
vocab=not-loaded

[empty-vocabulary]
language=en
backend=elias
vocab=empty
"""


def uri(subject):
    return f"http://example.org/{subject}"


def tsv(documents):
    return "".join(f"{text}\t{' '.join(f'<{uri(subject)}>' for subject in subjects)}\n" for text, subjects in documents)


def documents(n, seed):
    """Texts such as "a ripe red apple", whose subjects are "fruit" and "red"."""
    choice = random.Random(seed).choice
    for _ in range(n):
        kind, colour = choice(list(WORDS)), choice(["red", "green"])
        before, after = map(choice, WORDS[kind])
        yield f"a {before} {colour} {after}", [kind, colour]


class Annif:
    """Annif's command line in a directory of its own."""

    def __init__(self, directory):
        self.directory = directory

    def copy(self, directory):
        """The same in a new directory, which a test may change."""
        shutil.copytree(self.directory, directory, dirs_exist_ok=True)
        return Annif(directory)

    def prepare(self):
        self.write("projects.cfg", PROJECTS)
        self.write("things.csv", "uri,label_en,notation\n" + "".join(f"{uri(s)},{s},\n" for s in SUBJECTS))
        self.write("empty.csv", "uri,label_en\n")
        self.write("train.tsv", tsv(documents(200, seed=1)))
        self.write("test.tsv", tsv(documents(80, seed=2)))
        self.run("load-vocab", "things", "things.csv")
        self.run("load-vocab", "empty", "empty.csv")

    def write(self, name, content):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    def attempt(self, *arguments, text=None):
        """The result of a command that may fail, in this process, because Annif takes a second to start."""
        before = os.getcwd()
        os.chdir(self.directory)
        try:
            result = CliRunner(env={"ANNIF_CONFIG": "elias_xmc.annif.Config"}).invoke(cli, arguments, input=text)
        finally:
            os.chdir(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def run(self, *arguments, text=None):
        """What a command that must succeed prints."""
        result = self.attempt(*arguments, text=text)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    def fail(self, *arguments):
        """What a command that must fail prints as its error."""
        result = self.attempt(*arguments)
        assert result.exit_code == 1, result.stderr
        return result.stderr

    def suggest(self, text, *arguments):
        """The suggested subjects with their scores, best first."""
        lines = self.run("suggest", *arguments, "elias", text=text).splitlines()
        return [(line.split("\t")[1], float(line.split("\t")[-1])) for line in lines]

    def evaluate(self, *arguments):
        lines = self.run("eval", *arguments).splitlines()
        return {name.rstrip(": "): float(value) for name, value in (line.split("\t") for line in lines)}


@pytest.fixture(scope="session")
def untrained_template(tmp_path_factory):
    annif = Annif(tmp_path_factory.mktemp("untrained"))
    annif.prepare()
    return annif


@pytest.fixture(scope="session")
def trained(untrained_template, tmp_path_factory):
    """With the project `elias` trained, for tests that only read."""
    annif = untrained_template.copy(tmp_path_factory.mktemp("trained"))
    annif.run("train", "elias", "train.tsv")
    return annif


@pytest.fixture
def annif(untrained_template, tmp_path):
    """Before any training."""
    return untrained_template.copy(tmp_path)


@pytest.fixture
def trained_copy(trained, tmp_path):
    """With the project `elias` trained, for tests that change it."""
    return trained.copy(tmp_path)
