"""What scoring on Spark, Ray and Dask has in common: Arrow batches in, Arrow batches out, one mapped model per process."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ._errors import EliasFileNotFoundError, EliasValueError
from ._inputs import options_of, path_of
from ._model import Model, load
from ._types import PathLike

__all__ = ["ANSWERS", "Scoring", "fingerprint_of"]

#: The columns of answers.
ANSWERS = ("labels", "scores", "probabilities")

#: The models of this process, by path and fingerprint. Their files are mapped, so processes of one host share them.
_models: dict[tuple[str, str], Model] = {}
_loading = threading.Lock()


@dataclass(frozen=True)
class Scoring:
    """How to score batches; small, so that it goes to every task as it is."""

    #: The directory of the model, as a worker finds it.
    path: str
    #: The model that was there when the query was made; None if the path leads nowhere on the machine that made it.
    fingerprint: str | None
    #: The column of texts.
    text: str
    k: int
    threshold: float | None
    stage: str | None
    threads: int
    #: Columns of the input that stay; None: all.
    keep: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        model: Model | PathLike,
        text: str,
        k: int,
        keep: Iterable[str] | None,
        threshold: float | None,
        stage: str | None,
        threads: int,
    ) -> Scoring:
        path = model.path if isinstance(model, Model) else path_of(model)
        if path is None:
            raise EliasValueError("workers cannot see a model in memory: save it, and give what save returns")
        if isinstance(keep, str):
            keep = [keep]
        options = options_of(k, threshold, stage, threads)
        for name in ("k", "threads"):
            if options[name] < 1:
                raise EliasValueError(f"{name} is {options[name]}, expected at least 1")
        is_here = os.path.exists(path)
        return cls(
            path=os.path.abspath(path) if is_here else path,
            fingerprint=fingerprint_of(path) if is_here else None,
            text=text,
            k=options["k"],
            threshold=options["threshold"],
            stage=options["stage"],
            threads=options["threads"],
            keep=None if keep is None else tuple(keep),
        )

    def at(self, path: str) -> Scoring:
        """The same for the model at another path."""
        return replace(self, path=path)

    def kept(self, columns: Sequence[str]) -> list[str]:
        """The columns that stay, of those that are there."""
        kept = list(columns) if self.keep is None else list(self.keep)
        for name in [self.text, *kept]:
            if name not in columns:
                raise EliasValueError(f"no column {name}; the columns are {', '.join(columns)}")
        for name in ANSWERS:
            if name in kept:
                raise EliasValueError(f"the answers have a column {name}, too: rename it, or leave it out with keep")
        return kept

    def model(self) -> Model:
        """The model, mapped once per process."""
        if self.fingerprint is not None and (found := _models.get((self.path, self.fingerprint))):
            return found
        with _loading:
            fingerprint = fingerprint_of(self.path)
            if fingerprint != (self.fingerprint or fingerprint):
                raise EliasValueError(
                    f"{self.path}: the model is not the one that was there when the query was made: make it again"
                )
            key = (self.path, fingerprint)
            if key not in _models:
                # One that was replaced is let go as soon as nobody answers with it any more.
                for other in [other for other in _models if other[0] == self.path]:
                    del _models[other]
                _models[key] = load(self.path)
            return _models[key]

    def answers(self, texts: Any) -> list[Any]:
        """The columns of answers for an Arrow array of texts; where there is no text, there is no answer."""
        import pyarrow
        import pyarrow.compute

        model = self.model()
        is_text = None
        if texts.null_count:
            is_text = texts.is_valid()
            texts = texts.fill_null("")
        found = model.predict_arrow(
            texts, self.k, threshold=self.threshold, stage=self.stage, threads=self.threads
        )
        columns = [found.column(name) for name in ANSWERS]
        if not model.is_calibrated or self.stage not in (None, "ensemble"):
            columns[2] = pyarrow.nulls(len(found), columns[2].type)
        if is_text is None:
            return columns
        if isinstance(is_text, pyarrow.ChunkedArray):
            is_text = is_text.combine_chunks()
        return [pyarrow.compute.if_else(is_text, column, pyarrow.scalar(None, column.type)) for column in columns]

    def batch(self, batch: Any) -> Any:
        """A record batch, or a table, with the kept columns and the answers."""
        kept = self.kept(batch.schema.names)
        columns = [batch.column(name) for name in kept] + self.answers(batch.column(self.text))
        return type(batch).from_arrays(columns, names=[*kept, *ANSWERS])

    def batches(self, batches: Iterable[Any]) -> Iterable[Any]:
        """Each of the batches with its answers."""
        for batch in batches:
            yield self.batch(batch)


def fingerprint_of(path: str) -> str:
    """What tells one model from another: the hash of its manifest, which has the hashes of all its files."""
    try:
        with open(os.path.join(path, "manifest.json"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.exists(path):
            raise EliasFileNotFoundError(
                f"{path}: no such file or directory on this worker: put the model on storage that all workers see, or ship it"
            ) from None
        raise EliasValueError(f"{path} is not a model: it has no manifest.json") from None
