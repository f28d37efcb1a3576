"""The backend `elias` for Annif 1.4, used without a change to Annif.

    ANNIF_CONFIG=elias_xmc.annif.Config annif train my-project corpus.tsv.gz

Importing this module registers the backend. Texts go to elias as they are, after the project's transforms, or as the
words of its analyzer if it names one. A subject is known to the model by its URI, so a vocabulary that is loaded again
in another order changes nothing. What a project may set is explained in docs/annif.md.
"""

from __future__ import annotations

import difflib
import json
import multiprocessing
import os
from typing import TYPE_CHECKING, Any

import annif.backend
import annif.default_config
import annif.util
from annif.backend.backend import AnnifLearningBackend
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.suggestion import SubjectSuggestion, SuggestionBatch
from rdflib import URIRef
from rdflib.namespace import SKOS

import elias_xmc
from elias_xmc._settings import keywords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from annif.corpus import Document, DocumentCorpus

# The settings of a project that are Annif's own.
PROJECT_SETTINGS = frozenset(
    ("name", "language", "backend", "vocab", "analyzer", "transform", "access", "allow_learn", "limit")
)
# Options of `elias train` that a project may set besides the settings of `elias config`.
TRAINING_OPTIONS = frozenset(("encoder", "preset", "config"))
# Annif drops suggestions with a score of zero and sorts the others, in single precision. This least score keeps them
# all, and this factor makes equal scores differ, so that Annif's order is the model's.
LEAST_SCORE = 1e-6
NEXT_LOWER = 1.0 - 2.0**-22


class Config(annif.default_config.Config):
    """Annif's configuration for the command line, with the backend `elias`."""


class ProductionConfig(annif.default_config.ProductionConfig):
    """Annif's configuration for servers, with the backend `elias`."""


class EliasBackend(AnnifLearningBackend):
    """Trains, asks and corrects one elias model, which is in the project's data directory."""

    name = "elias"

    TRAIN_FILE = "elias-train.jsonl"
    NAMES_FILE = "elias-train-names.jsonl"
    MODEL_DIRECTORY = "elias-model"

    # Defaults of instances without a model.
    _model: elias_xmc.Model | None = None
    _is_parallel = False

    @property
    def _model_path(self) -> str:
        return os.path.join(self.datadir, self.MODEL_DIRECTORY)

    @property
    def _model_file_paths(self) -> list[str]:
        # Checkpoints of an unfinished training are no model; its manifest is written last.
        manifest = os.path.join(self._model_path, "manifest.json")
        return [manifest] if os.path.exists(manifest) else []

    def initialize(self, parallel: bool = False) -> None:
        if parallel:
            self._is_parallel = True
            # The registry is sent to the workers of `annif eval --jobs`. Where these are new processes and not forks,
            # this reference makes them import this module, which registers the backend there.
            self.project.registry.elias_backend = type(self)
        if self._model is None:
            self._model = self._load()

    def _load(self) -> elias_xmc.Model:
        self.debug(f"loading model from {self._model_path}")
        if not self._model_file_paths:
            raise NotInitializedException(f"model {self._model_path} not found", backend_id=self.backend_id)
        try:
            return elias_xmc.load(self._model_path)
        except elias_xmc.EliasError as error:
            raise OperationFailedException(f"{error}; train the project again", backend_id=self.backend_id) from error

    def _train(self, corpus: DocumentCorpus, params: dict[str, Any], jobs: int = 0) -> None:
        # A misspelt setting is found before a large corpus is read.
        settings = self._settings(params)
        path = os.path.join(self.datadir, self.TRAIN_FILE)
        if corpus != "cached":
            if corpus.is_empty():
                raise NotSupportedException("Cannot train elias project with no documents")
            self.info("creating train file")
            annif.util.atomic_save(corpus, self.datadir, self.TRAIN_FILE, method=self._write_documents)
        elif os.path.exists(path):
            self.info("Reusing cached training data from previous run.")
        else:
            raise NotInitializedException(
                f"no training data of a previous run: {path} not found; train once without --cached",
                backend_id=self.backend_id,
            )
        self.info("training model")
        try:
            self._model = elias_xmc.train(
                path,
                format="jsonl",
                out=self._model_path,
                overwrite=True,
                threads=jobs or None,
                label_file=self._save_names(),
                progress=self._log,
                **{"train_label_texts": "auto", **settings},
            )
        except elias_xmc.EliasError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error

    def _learn(self, corpus: DocumentCorpus, params: dict[str, Any]) -> None:
        self.initialize()
        assert self._model is not None
        known, texts, labels = set(self._model.labels), [], []
        for text, uris in self._documents(corpus):
            if known.isdisjoint(uris):
                self.warning(f"a document has no subject that the model knows: train again to learn of {uris[0]}")
                continue
            texts.append(text)
            labels.append([uri for uri in uris if uri in known])
        if not texts:
            raise NotSupportedException(
                "Cannot learn: no document has both a text and a subject that the model knows"
            )
        try:
            self._model = elias_xmc.learn(self._model_path, texts, labels)
        except elias_xmc.EliasError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error

    def _log(self, event: dict[str, Any]) -> None:
        if event["event"] == "phase":
            self.info(event["phase"])
        elif event["event"] == "epoch":
            self.info(f"{event['phase']}: epoch {event['epoch']}, loss {event['loss']:.4f}")

    def _settings(self, params: dict[str, Any]) -> dict[str, Any]:
        """What a project sets for `elias_xmc.train`, as keywords.

        The settings of `elias config` have a dot in their names, or are in tables of projects.toml.
        """
        keyword_of = {key: keyword for keyword, key in keywords().items()}
        # The section DEFAULT of projects.cfg is for projects of all backends, so it may have settings of others.
        inherited: dict[str, str] = getattr(getattr(self.config_params, "parser", None), "defaults", dict)()
        known = [*keyword_of, *PROJECT_SETTINGS, *TRAINING_OPTIONS]
        settings = {}
        for key, value in _flattened(params):
            if key in keyword_of:
                settings[keyword_of[key]] = _typed(value)
            elif key in TRAINING_OPTIONS:
                settings[key] = value
            elif key not in PROJECT_SETTINGS and key not in inherited:
                similar = difflib.get_close_matches(key, known, 1)
                remedy = f"did you mean '{similar[0]}'?" if similar else "`elias config` lists those of elias"
                raise ConfigurationException(f"unknown setting '{key}': {remedy}", project_id=self.project.project_id)
        return settings

    def _write_documents(self, corpus: DocumentCorpus, path: str) -> None:
        n_documents = 0
        with open(path, "w", encoding="utf-8") as file:
            for text, uris in self._documents(corpus):
                print(json.dumps({"text": text, "labels": uris}, ensure_ascii=False), file=file)
                n_documents += 1
        if n_documents == 0:
            os.remove(path)
            raise NotSupportedException(
                "Cannot train elias project: no document has both a text and a subject of the vocabulary"
            )

    def _documents(self, corpus: DocumentCorpus) -> Iterator[tuple[str, list[str]]]:
        """The documents that have a text and a subject, with the URIs of their subjects."""
        for document in corpus.documents:
            uris = [self.project.subjects[subject_id].uri for subject_id in document.subject_set]
            text = self._analyzed(document.text)
            if uris and text.strip():
                yield text, uris

    def _analyzed(self, text: str) -> str:
        """A text as elias gets it: as it is, or as the words that the project's analyzer makes of it."""
        if not self.project.analyzer_spec:
            return text
        return " ".join(self.project.analyzer.tokenize_words(text))

    def _save_names(self) -> str | None:
        """Writes the names of subjects to a file; its path, or None if there are no names."""
        names = self._subject_names()
        if not names:
            return None
        annif.util.atomic_save(names, self.datadir, self.NAMES_FILE, method=_write_names)
        return os.path.join(self.datadir, self.NAMES_FILE)

    def _subject_names(self) -> dict[str, str]:
        """The names of subjects in the project's language, then their synonyms if the vocabulary is SKOS, by URI."""
        language = self.project.vocab_lang
        try:
            skos = self.project.vocab.skos
        except NotInitializedException:
            skos = None
        names = {}
        for _, subject in self.project.subjects.active:
            own = [subject.labels[language]] if subject.labels.get(language) else []
            if skos is not None:
                own += sorted(skos.get_concept_labels(URIRef(subject.uri), [SKOS.altLabel])[language])
            if own:
                names[subject.uri] = self._analyzed("; ".join(own))
        return names

    def _suggest_batch(self, documents: list[Document], params: dict[str, Any]) -> SuggestionBatch:
        limit = self._limit(params)
        assert self._model is not None, "Annif initializes a backend before it asks"
        # A text without a known word gets the answers of the empty text, which say nothing about it.
        texts = [self._analyzed(document.text) for document in documents] + [""]
        try:
            *answers, uninformed = self._model.predict(texts, k=limit, threads=self._threads, deny=self._denied())
        except elias_xmc.EliasError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error
        suggestions = [[] if one == uninformed else list(self._suggestions(one)) for one in answers]
        return SuggestionBatch.from_sequence(suggestions, self.project.subjects, limit=limit)

    def _denied(self) -> list[int]:
        """Labels that are no subjects of the vocabulary any more, or excluded from the project's."""
        assert self._model is not None
        known = self.project.subjects.by_uri
        return [at for at, uri in enumerate(self._model.labels) if known(uri, warnings=False) is None]

    @property
    def _threads(self) -> int | None:
        """One per process where Annif runs several of them, else all cores."""
        is_worker = multiprocessing.parent_process() is not None
        return 1 if self._is_parallel or is_worker else None

    def _limit(self, params: dict[str, Any]) -> int:
        limit = _typed(params["limit"])
        if type(limit) is not int or limit < 1:
            raise ConfigurationException(
                f"limit is '{limit}', expected an integer of at least 1", project_id=self.project.project_id
            )
        return limit

    def _suggestions(self, answers: Iterable[elias_xmc.Prediction]) -> Iterator[SubjectSuggestion]:
        """The answers as suggestions in the same order, which have probabilities as scores if there are any."""
        highest = 1.0
        for answer in answers:
            score = answer.score if answer.probability is None else answer.probability
            score = min(max(score, LEAST_SCORE), highest)
            highest = score * NEXT_LOWER
            subject_id = self.project.subjects.by_uri(answer.label, warnings=False)
            if subject_id is not None:
                yield SubjectSuggestion(subject_id=subject_id, score=score)


def _write_names(names: dict[str, str], path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for uri, name in names.items():
            print(json.dumps({"label": uri, "text": name}, ensure_ascii=False), file=file)


def _flattened(params: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by dotted names; those of projects.toml are nested tables."""
    for key, value in params.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _typed(value: Any) -> Any:
    """A value of projects.cfg or of the command line, which are strings, as what it says: a number, a truth, a word."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


annif.backend._backend_fns[EliasBackend.name] = lambda: EliasBackend
