"""`Model`: what answers, and `load`, which opens one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from ._elias import Core, predict_arrow
from ._elias import learn as _learn
from ._elias import merge as _merge
from ._errors import EliasValueError
from ._inputs import (
    corrections_of,
    cut_offs_of,
    dense_of,
    make_dataset,
    number,
    options_of,
    pairs_of,
    path_of,
    points_of,
    texts_with,
    threads_of,
)
from ._types import Labels, PathLike, Prediction

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["Model", "learn", "load", "merge"]


def load(path: PathLike, *, verify: bool = False) -> Model:
    """Opens a model. Its files are mapped, so that processes share them; `verify` checks every byte first."""
    return Model(Core.load(path_of(path), verify))


def learn(path: PathLike, texts: Any, labels: Any = None, rejected: Any = None) -> Model:
    """Learns from accepted and rejected labels of texts at once, as `elias learn`, and returns the model.

    They are appended to the journal in the model's directory, and on the disk when this returns: everybody who loads the
    model from now on gets such answers. `texts` is a text or a list of texts, `labels` and `rejected` have a list of
    names for each.
    """
    return Model(_learn(path_of(path), corrections_of(texts, labels, rejected)))


def merge(
    models: Iterable[Model | PathLike],
    out: PathLike,
    *,
    calibrate: Any = None,
    overwrite: bool = False,
    threads: int | None = None,
) -> Model:
    """Makes one ensemble of several models, as `elias merge`, and returns it.

    The models were trained on the same data, with the same features, encoder, index and kind of ranker and calibration;
    seeds, epochs, rates and losses may differ. The score of a label is its mean over all members. Their probabilities
    belong to their own scores: the ensemble has some only with `calibrate`, a pair `(texts, labels)` or a path of data
    that no model was trained on.
    """
    paths = []
    for model in models:
        path = model.path if isinstance(model, Model) else path_of(model)
        if path is None:
            raise EliasValueError("a model in memory cannot be merged: save it, and give what save returns")
        paths.append(path)
    out = path_of(out)
    if not overwrite and os.path.exists(out) and not (os.path.isdir(out) and not os.listdir(out)):
        raise EliasValueError(f"{out} exists: choose another output, or give overwrite=True")
    held_out = None
    if calibrate is not None and paths:
        pair = calibrate if isinstance(calibrate, tuple) else (calibrate, None)
        held_out = make_dataset(*pair, part="test", known=load(paths[0])._core, threads=threads)
    _merge(paths, out, bool(overwrite), held_out, threads_of(threads))
    return load(out)


class Model:
    """A trained model, made by `train` or `load`.

    It can be shared between threads, which predict in parallel. Pickling a model pickles its path, so that workers of
    joblib, multiprocessing, Spark and Ray map the same files; a model in memory is pickled with all its bytes.

    >>> from elias_xmc import train
    >>> model = train(["red apple", "blue sky"], [["fruit"], ["weather"]], stage1_epochs=20)
    >>> [answer.label for answer in model.predict("an apple", k=1)]
    ['fruit']
    >>> model.predict_csr(["apple", "sky"], k=2).shape
    (2, 2)
    """

    __slots__ = ("_core", "_labels", "__weakref__")

    def __init__(self, core: Core) -> None:
        if not isinstance(core, Core):
            raise TypeError("a model is made by elias_xmc.train or elias_xmc.load")
        self._core = core
        self._labels: list[str] | None = None

    @property
    def path(self) -> str | None:
        """The directory of the model; None if it is only in memory."""
        path = self._core.path
        return None if path is None else os.fspath(path)

    @property
    def labels(self) -> list[str]:
        """The names of all labels, in the order of the columns of `predict_csr`."""
        if self._labels is None:
            self._labels = self._core.labels()
        return self._labels

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return self._core.n_labels

    @property
    def takes_texts(self) -> bool:
        """Whether the model takes texts; otherwise it takes sparse features."""
        return self._core.takes_texts

    @property
    def is_calibrated(self) -> bool:
        """Whether answers have probabilities; calibration needs at least 100 held-out points."""
        return self._core.is_calibrated

    @overload
    def predict(
        self,
        texts: str,
        k: int = ...,
        *,
        threshold: float | None = ...,
        stage: str | None = ...,
        threads: int | None = ...,
        allow: Iterable[str | int] | None = ...,
        deny: Iterable[str | int] = ...,
        thresholds: Mapping[str | int, float] | None = ...,
        X_dense: Any = ...,
    ) -> list[Prediction]: ...

    @overload
    def predict(
        self,
        texts: Any,
        k: int = ...,
        *,
        threshold: float | None = ...,
        stage: str | None = ...,
        threads: int | None = ...,
        allow: Iterable[str | int] | None = ...,
        deny: Iterable[str | int] = ...,
        thresholds: Mapping[str | int, float] | None = ...,
        X_dense: Any = ...,
    ) -> list[list[Prediction]]: ...

    def predict(
        self,
        texts: Any,
        k: int = 10,
        *,
        threshold: float | None = None,
        stage: str | None = None,
        threads: int | None = None,
        allow: Iterable[str | int] | None = None,
        deny: Iterable[str | int] = (),
        thresholds: Mapping[str | int, float] | None = None,
        X_dense: Any = None,
    ) -> Any:
        """The `k` best labels of a text, best first; of a list of texts or a sparse matrix, a list for each.

        `threshold` is the least probability of an answer, or the least score if the model is not calibrated. `stage`
        answers with a part of the model: stage1, stage2, networks, ranker, calibrated or ensemble. Lists are answered
        on `threads` threads, by default one per core, and without Python's lock.

        With `allow`, names or numbers of labels, only these are answers, and all of them are considered whatever the
        text; labels in `deny` never are. `thresholds` maps single labels to their own thresholds. A model that was
        trained with embeddings of texts takes them as `X_dense`, an array with a row per text.
        """
        options = options_of(k, threshold, stage, threads, allow=allow, deny=deny, thresholds=thresholds)
        if isinstance(texts, str) and X_dense is None:
            return self._core.predict_one(texts, options)
        answers = self._core.predict(texts_with(texts, X_dense), options)
        return answers[0] if isinstance(texts, str) else answers

    def predict_csr(
        self,
        texts: Any,
        k: int = 10,
        *,
        probabilities: bool = False,
        threshold: float | None = None,
        stage: str | None = None,
        threads: int | None = None,
        allow: Iterable[str | int] | None = None,
        deny: Iterable[str | int] = (),
        thresholds: Mapping[str | int, float] | None = None,
        X_dense: Any = None,
    ) -> csr_matrix:
        """The scores of the `k` best labels of each text as a SciPy matrix, with a column per label of `labels`.

        With `probabilities`, those instead of scores.
        """
        from scipy.sparse import csr_matrix

        options = options_of(k, threshold, stage, threads, allow=allow, deny=deny, thresholds=thresholds)
        points = texts_with([texts] if isinstance(texts, str) else texts, X_dense)
        indptr, indices, data = self._core.predict_csr(points, options, bool(probabilities))
        return csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, self._core.n_labels), copy=False)

    def predict_arrow(
        self,
        batch: Any,
        k: int = 10,
        *,
        column: str | None = None,
        threshold: float | None = None,
        stage: str | None = None,
        threads: int | None = None,
        allow: Iterable[str | int] | None = None,
        deny: Iterable[str | int] = (),
        thresholds: Mapping[str | int, float] | None = None,
    ) -> Any:
        """The `k` best labels of each text of an Arrow batch: the columns `labels`, `scores` and `probabilities`.

        `batch` is a record batch, a table or a data frame with the texts in `column` (by default `text`, or the only
        one), or an array of strings: anything with Arrow's PyCapsule interface. What comes out is a record batch of
        pyarrow or a data frame of polars if that came in, else an object with the PyCapsule interface.
        """
        options = options_of(k, threshold, stage, threads, allow=allow, deny=deny, thresholds=thresholds)
        answers = predict_arrow(self._core, batch, options, column)
        library = type(batch).__module__.partition(".")[0]
        if library == "pyarrow":
            import pyarrow

            return pyarrow.record_batch(answers)
        if library == "polars":
            import polars

            return polars.DataFrame(answers)
        return answers

    def learn(self, texts: Any, labels: Any = None, rejected: Any = None, *, threads: int | None = None) -> Model:
        """Learns from accepted and rejected labels of texts at once, and returns the model.

        A text with accepted labels becomes one that similar texts are compared with; a rejected label is lowered for
        similar texts, and gone for the same text. Nothing is trained: give the texts to the next training, too. `texts`
        is a text or a list of texts, `labels` and `rejected` have a list of names for each; accepted labels may also
        come as for `train`, with texts or features.

        The model is in memory from then on, so save it; `elias_xmc.learn` keeps corrections with a model on disk.
        """
        if rejected is None and not isinstance(texts, str):
            data = make_dataset(texts, labels, part="test", known=self._core, threads=threads)
            self._core = self._core.learn_data(data, threads_of(threads))
        else:
            self._core = self._core.learn(corrections_of(texts, labels, rejected), threads_of(threads))
        return self

    def embed(self, texts: Any, *, threads: int | None = None) -> Any:
        """The vectors of texts as a NumPy array with a row for each, for a store of vectors.

        The inner product of a row with one of `embed_labels` is the network's score of the label, without its bias.
        """
        return self._embed([texts] if isinstance(texts, str) else points_of(texts), threads)

    def embed_labels(self) -> Any:
        """The vectors of all labels as a NumPy array, in the order of `labels`."""
        return self._embed(None, None)

    def _embed(self, points: Any, threads: int | None) -> Any:
        values, dim = self._core.embed(points, threads_of(threads))
        return values.reshape(-1, dim)

    def explain(self, text: str, k: int = 10) -> dict[str, Any]:
        """Why a text gets its labels: clusters, edges, words and votes behind each answer, as `elias explain --json`."""
        if not isinstance(text, str):
            raise EliasValueError(f"text: found {type(text).__name__}, expected a string")
        k = options_of(k)["k"]
        return _object(self._core.explain(text, k))

    def inspect(self) -> dict[str, Any]:
        """Sizes, settings, history and the state of the index, as `elias inspect --json`."""
        return _object(self._core.inspect())

    def evaluate(
        self,
        texts: Any,
        labels: Labels | None = None,
        *,
        label_names: Any = None,
        propensity: str = "default",
        filter: Iterable[tuple[int, int]] = (),
        by_decile: bool = False,
        latency: bool = False,
        stage: str | None = None,
        at: Iterable[int] | None = None,
        threshold: float | None = None,
        by_label: bool = False,
        X_dense: Any = None,
        threads: int | None = None,
        **reading: Any,
    ) -> dict[str, Any]:
        """P@k, nDCG@k, PSP@k, R@k and F1@k in percent, as `elias evaluate --json`.

        `texts` and `labels` as for `train`, or a path. `latency` also times single queries. `at` has the numbers of
        answers k; `threshold` adds precision, recall and F1 of all answers of at least that probability to those at the
        best threshold; `by_label` adds support, precision and recall of every label as a list of dicts; `X_dense` has
        an embedding of every text, for a model that was trained with such.
        """
        data = self._test(texts, labels, label_names, threads, reading)
        if X_dense is not None:
            data = data.with_embeddings(dense_of(X_dense))
        pairs = pairs_of(filter)
        threads = threads_of(threads)
        asked = None if threshold is None else number(threshold, "threshold")
        options = (by_decile, latency, by_label, cut_offs_of(at), asked, stage, threads)
        return _object(self._core.evaluate(data, propensity, pairs, *options))

    def report(
        self,
        out: PathLike,
        texts: Any,
        labels: Labels | None = None,
        *,
        train: Any = None,
        label_names: Any = None,
        overwrite: bool = False,
        threads: int | None = None,
        **reading: Any,
    ) -> None:
        """Writes the paper's tables and figures for this model as one HTML page, as `elias report`.

        `texts` and `labels` are test data, as for `train`, or a path. `train` is a pair `(texts, labels)` or a path;
        with it, the page shows words of clusters and maps, too. Needs a model on disk.
        """
        out = path_of(out)
        if os.path.exists(out) and not overwrite:
            raise EliasValueError(f"{out} exists: choose another output, or give overwrite=True")
        test = self._test(texts, labels, label_names, threads, reading)
        points = None
        if train is not None:
            pair = train if isinstance(train, tuple) else (train, None)
            points = make_dataset(*pair, part="train", label_names=label_names, known=self._core, threads=threads)
        self._core.report(out, test, points, threads_of(threads))

    def save(self, path: PathLike, *, overwrite: bool = False) -> Model:
        """Writes the model to a directory and returns the model that is there."""
        self._core.save(path_of(path), overwrite)
        return load(path)

    def _test(self, texts: Any, labels: Any, label_names: Any, threads: int | None, reading: dict[str, Any]) -> Any:
        unknown = set(reading) - {"format", "text_column", "label_column", "label_separator"}
        if unknown:
            raise TypeError(f"unexpected keyword argument {sorted(unknown)[0]!r}")
        return make_dataset(
            texts, labels, part="test", label_names=label_names, known=self._core, reading=reading, threads=threads
        )

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        path = self.path
        return (_unpack, (_pack(self),)) if path is None else (load, (path,))

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else repr(self.path)
        return f"<elias_xmc.Model {where}, {self.n_labels} labels>"


def _pack(model: Model) -> dict[str, bytes]:
    """The files of a model in memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "model")
        model._core.save(path, False)
        files = {}
        for name in sorted(os.listdir(path)):
            with open(os.path.join(path, name), "rb") as file:
                files[name] = file.read()
    return files


def _unpack(files: dict[str, bytes]) -> Model:
    # Mapped files stay readable after their names are gone; where they do not, the system keeps the directory.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        for name, content in files.items():
            with open(os.path.join(directory, os.path.basename(name)), "wb") as file:
                file.write(content)
        return Model(Core.load(directory, verify=True, temporary=True))


def _object(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found
