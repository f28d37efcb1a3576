"""`EliasClassifier`: the verbs of scikit-learn."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ._errors import EliasValueError
from ._frames import columns_of, is_missing, unframed
from ._inputs import as_list, check_sparse, is_matrix
from ._settings import keywords
from ._train import train
from ._types import OnEvent, PathLike, Prediction

__all__ = ["EliasClassifier"]

#: What `y` was: one class per point, lists of labels, a sparse or a dense matrix of zeros and ones.
CLASSES, LISTS, SPARSE, DENSE = "classes", "lists", "sparse", "dense"


class EliasClassifier(ClassifierMixin, BaseEstimator):
    """A multi-label classifier for texts or sparse features.

    `fit` takes texts (a list or a column of strings) or a matrix of features, and as `y` lists of labels, a matrix of
    zeros and ones (a data frame of them, whose columns name the labels), or one class per point. None and NaN among lists
    of labels are points without labels. What `predict`, `predict_proba` and `decision_function` return follows `y`:
    sparse matrices for lists and sparse matrices, arrays for dense ones; for one class per point, what scikit-learn's
    classifiers return.

    Parameters
    ----------
    k : labels per point in `predict_proba` and `decision_function`; the others are 0.
    threshold : least probability of a predicted label; least score where the model is not calibrated.
    thresholds : a dict of single labels with thresholds of their own.
    label_names : the labels of the columns of `y`; for lists of labels, all labels in the order that is wanted.
    out : directory of the model; by default it is kept in memory. `overwrite` replaces one that is there.
    config, preset, encoder, progress : as for `elias_xmc.train`.
    n_jobs : threads; by default one per core.
    **settings : every setting of `elias config`, with `_` for `.`, such as `stage2_epochs`; None is the default.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns.
    model_ : the `elias_xmc.Model`.

    >>> texts = ["ripe red apple", "fast red car", "ripe green pear", "fast green bike"]
    >>> labels = [["fruit", "red"], ["vehicle", "red"], ["fruit", "green"], ["vehicle", "green"]]
    >>> classifier = EliasClassifier(stage1_epochs=50).fit(texts, labels)
    >>> print(classifier.classes_)
    ['fruit' 'green' 'red' 'vehicle']
    >>> classifier.predict(["a ripe plum"]).toarray()
    array([[1, 0, 0, 0]])
    """

    def __init__(
        self,
        *,
        k: int = 10,
        threshold: float = 0.5,
        thresholds: Mapping[Any, float] | None = None,
        label_names: Any = None,
        out: PathLike | None = None,
        overwrite: bool = False,
        config: PathLike | None = None,
        preset: str | None = None,
        encoder: PathLike | None = None,
        progress: bool | OnEvent = False,
        n_jobs: int | None = None,
        **settings: Any,
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.thresholds = thresholds
        self.label_names = label_names
        self.out = out
        self.overwrite = overwrite
        self.config = config
        self.preset = preset
        self.encoder = encoder
        self.progress = progress
        self.n_jobs = n_jobs
        unknown = settings.keys() - keywords().keys()
        if unknown:
            raise TypeError(f"EliasClassifier() got an unexpected keyword argument {min(unknown)!r}")
        for keyword in keywords():
            setattr(self, keyword, settings.get(keyword))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EliasClassifier:
        """Trains on texts or features; `sample_weight` has a number of at least 0 for each."""
        return self._fit(X, y, self.label_names, sample_weight)

    def _fit(self, X: Any, y: Any, names: Any, sample_weight: Any = None) -> EliasClassifier:
        points = self._points(X, is_new=True)
        matrix, names = self._targets(y, names)
        n_points = len(points) if isinstance(points, list) else points.shape[0]
        if n_points != matrix.shape[0]:
            raise EliasValueError(f"X has {n_points} points and y {matrix.shape[0]}: expected as many of the one as of the other")
        self.model_ = train(
            points,
            matrix,
            label_names=names,
            sample_weight=None if sample_weight is None else _check_sample_weight(sample_weight, points),
            out=self.out,
            overwrite=self.overwrite,
            config=self.config,
            preset=self.preset,
            encoder=self.encoder,
            progress=self.progress,
            threads=self._threads(),
            **{keyword: getattr(self, keyword) for keyword in keywords()},
        )
        if not self.model_.is_calibrated and getattr(self, "final_score_kind") is None:
            warnings.warn(
                f"{matrix.shape[0]} points are too few to calibrate on: predict_proba gives scores, and threshold is "
                "the least score",
                stacklevel=2,
            )
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> EliasClassifier:
        """Trains as `fit` the first time; from then on learns from the points at once, as `Model.learn`.

        The first call says which labels there are: `classes`, or those of `y`. Later ones have no others. Nothing is
        trained by them: the points count as neighbours of those that are asked about, which takes a model with an index
        of its training points, as it is by default.
        """
        if not hasattr(self, "model_"):
            return self._fit(X, y, classes)
        points = self._points(X)
        labels = [sorted(map(str, row)) for row in self._sets(y)]
        self.model_.learn(points, labels, threads=self._threads())
        return self

    def decision_function(self, X: Any) -> Any:
        """The scores of the `k` best labels; for two classes, the share of the second less that of the first."""
        if self._kind_of_fitted() == CLASSES and len(self.classes_) == 2:
            first, second = self.predict_proba(X).T
            return second - first
        scores = self._scores(X)
        if self._kind == CLASSES:
            return scores.toarray().astype(numpy.float64)
        return scores if self._kind != DENSE else scores.toarray()

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the `k` best labels; scores where the model is not calibrated.

        For one class per point, the scores of a point are scaled to sum to 1.
        """
        if self._kind_of_fitted() == CLASSES:
            scores = self._scores(X).toarray().astype(numpy.float64)
            sums = scores.sum(axis=1, keepdims=True)
            even = numpy.full_like(scores, 1 / max(1, len(self.classes_)))
            return numpy.divide(scores, sums, out=even, where=sums > 0)
        found = self._scores(X, probabilities=self.model_.is_calibrated)
        return found if self._kind != DENSE else found.toarray()

    def predict(self, X: Any) -> Any:
        """The labels of each point: a matrix of zeros and ones, or for one class per point the best one."""
        if self._kind_of_fitted() == CLASSES:
            # Ties go to the first class.
            return self.classes_[self._scores(X).toarray().argmax(axis=1)]
        thresholds = {str(label): value for label, value in (self.thresholds or {}).items()}
        found = self._scores(X, threshold=self.threshold, thresholds=thresholds)
        found.data = numpy.ones(len(found.data), dtype=numpy.int64)
        return found if self._kind != DENSE else found.toarray()

    def predict_topk(self, X: Any, k: int = 10) -> list[list[Prediction]]:
        """The `k` best labels of each point, best first, with score and probability."""
        check_is_fitted(self)
        found = self.model_.predict(self._points(X), k, threads=self._threads())
        if self._kind == LISTS:
            return found
        class_of = dict(zip(self.model_.labels, self.classes_))
        return [[Prediction(class_of[label], *rest) for label, *rest in answers] for answers in found]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """P@1: how often the best label is right; for one class per point, the accuracy."""
        check_is_fitted(self)
        best = [answers[0].label if answers else None for answers in self.predict_topk(X, k=1)]
        truth = self._sets(y)
        check_consistent_length(best, truth)
        is_right = numpy.array([label in labels for label, labels in zip(best, truth)], dtype=float)
        has_labels = numpy.array([bool(labels) for labels in truth], dtype=float)
        weights = has_labels if sample_weight is None else has_labels * numpy.asarray(sample_weight, dtype=float)
        return float(numpy.average(is_right, weights=weights)) if weights.sum() > 0 else 0.0

    def _scores(self, X: Any, **options: Any) -> csr_matrix:
        check_is_fitted(self)
        return self.model_.predict_csr(self._points(X), self.k, threads=self._threads(), **options)

    def _kind_of_fitted(self) -> str:
        check_is_fitted(self)
        return self._kind

    def _threads(self) -> int | None:
        """As joblib counts them: -1 is all cores, -2 all but one."""
        if self.n_jobs is None or self.n_jobs > 0:
            return self.n_jobs
        return max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def _points(self, X: Any, is_new: bool = False) -> Any:
        """Texts as a list, features as a matrix of finite numbers."""
        if len(columns_of(X) or ()) == 1:
            column = as_list(unframed(X, "X")[0], "X")
            if column and all(isinstance(value, str) for value in column):
                return column
        is_column = isinstance(X, (list, tuple)) or hasattr(X, "to_pylist") or getattr(X, "ndim", None) == 1
        if is_column or hasattr(X, "to_list"):
            values = as_list(X, "X")
            if values and all(isinstance(value, str) for value in values):
                return values
        if issparse(X):
            check_sparse(X, "X")
        return validate_data(self, X, accept_sparse="csr", dtype=[numpy.float64, numpy.float32], reset=is_new)

    def _targets(self, y: Any, given: Any) -> tuple[csr_matrix, list[str]]:
        """Y with the columns of `classes_`, and their names; `given` are the labels, if they are known."""
        if y is None:
            raise EliasValueError("requires y to be passed, but the target y is None")
        y, of_frame = unframed(y, "y")
        given = of_frame if given is None else as_list(given, "label_names")
        if issparse(y):
            self._kind = SPARSE
            check_sparse(y, "y")
            matrix = check_array(y, accept_sparse="csr", input_name="y")
            self.classes_ = _named(matrix.shape[1], given)
        elif _are_lists(y):
            self._kind = LISTS
            rows = _rows(y)
            found = {label for labels in rows for label in labels}
            missing = found.difference(found if given is None else given)
            if missing:
                raise EliasValueError(f"y: label_names does not have the label {min(missing, key=str)!r}")
            self.classes_ = numpy.array(sorted(found) if given is None else given)
            matrix = self._matrix(rows)
        else:
            array = numpy.asarray(y)
            if array.ndim == 2 and array.shape[1] > 1:
                self._kind = DENSE
                check_classification_targets(array)
                matrix = csr_matrix(check_array(array, input_name="y"))
                self.classes_ = _named(matrix.shape[1], given)
            else:
                self._kind = CLASSES
                if self.label_names is not None:
                    raise EliasValueError("label_names are for lists of labels and for matrices, y has one class per point")
                array = column_or_1d(array, warn=True)
                if array.dtype.kind == "f" and not numpy.isfinite(array).all():
                    raise EliasValueError("Input y contains NaN or infinity.")
                check_classification_targets(array)
                self.classes_ = numpy.unique(array if given is None else given)
                columns = numpy.searchsorted(self.classes_, array)
                is_known = self.classes_[numpy.minimum(columns, len(self.classes_) - 1)] == array
                if not is_known.all():
                    raise EliasValueError(f"y has the class {array[~is_known][0]!r}, which is not among classes")
                n_points = len(array)
                ones = numpy.ones(n_points, dtype=numpy.float32)
                shape = (n_points, len(self.classes_))
                matrix = csr_matrix((ones, (numpy.arange(n_points), columns)), shape=shape)
        names = [str(label) for label in self.classes_]
        if len(set(names)) < len(names):
            raise EliasValueError("y: different labels have the same name")
        return matrix, names

    def _matrix(self, rows: list[Any]) -> csr_matrix:
        column = {label: place for place, label in enumerate(self.classes_.tolist())}
        relevance = [list(row.values()) if isinstance(row, Mapping) else [1.0] * len(row) for row in rows]
        indptr = numpy.cumsum([0] + [len(labels) for labels in rows])
        indices = numpy.array([column[label] for labels in rows for label in labels], dtype=numpy.int64)
        data = numpy.array([value for values in relevance for value in values], dtype=numpy.float32)
        matrix = csr_matrix((data, indices, indptr), shape=(len(rows), len(column)))
        if not matrix.has_canonical_format:
            matrix.sum_duplicates()
        return matrix

    def _sets(self, y: Any) -> list[set[Any]]:
        """The true labels of each point."""
        y, _ = unframed(y, "y")
        if issparse(y) or (not _are_lists(y) and numpy.asarray(y).ndim == 2):
            matrix = csr_matrix(y)
            if matrix.shape[1] == len(self.classes_):
                rows = numpy.split(matrix.indices, matrix.indptr[1:-1])
                return [set(self.classes_[row].tolist()) for row in rows]
            y = numpy.asarray(y).ravel()
        if _are_lists(y):
            return [set(labels) for labels in _rows(y)]
        return [{label} for label in as_list(y, "y")]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _are_lists(y: Any) -> bool:
    """Whether y has a list of labels per point.

    Lists of the same length that hold only 0 and 1 are rows of a matrix, as everywhere in scikit-learn.
    """
    if is_matrix(y) or getattr(y, "ndim", 1) != 1 or not hasattr(y, "__iter__"):
        return False
    values = [value for value in as_list(y, "y") if not is_missing(value)]
    if not values or not all(isinstance(value, (list, tuple, set, frozenset, Mapping, numpy.ndarray)) for value in values):
        return False
    has_one_length = len({len(value) for value in values}) == 1 and len(values[0]) > 1
    return not (has_one_length and all(map(_is_row, values)))


def _rows(y: Any) -> list[Any]:
    """The labels of each point, as a list or with their relevance."""
    rows = (() if is_missing(row) else row for row in as_list(y, "y"))
    return [row if isinstance(row, Mapping) else list(row) for row in rows]


def _named(n_columns: int, names: list[Any] | None) -> Any:
    """The labels of the columns of a matrix: their names, or their numbers."""
    if names is None:
        return numpy.arange(n_columns)
    if len(names) != n_columns:
        raise EliasValueError(f"label_names has {len(names)} entries for the {n_columns} columns of y")
    return numpy.array(names)


def _is_row(value: Any) -> bool:
    is_sequence = isinstance(value, (list, tuple, numpy.ndarray))
    return is_sequence and all(isinstance(entry, (int, numpy.integer)) and entry in (0, 1) for entry in value)


def _signature() -> inspect.Signature:
    """The signature with every setting by name, where scikit-learn looks for parameters."""
    own = inspect.signature(EliasClassifier.__init__)
    kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    settings = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in keywords()]
    return own.replace(parameters=kept + settings)


EliasClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
