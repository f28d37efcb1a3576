"""`metrics`: how good anyone's scores are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _elias
from ._inputs import csr_parts, cut_offs_of, pairs_of

__all__ = ["metrics"]


def metrics(
    true_csr: Any,
    scores_csr: Any,
    train_csr: Any = None,
    *,
    propensity: str = "default",
    filter: Iterable[tuple[int, int]] = (),
    at: Iterable[int] | None = None,
) -> dict[str, Any]:
    """P@k, nDCG@k, PSP@k, R@k and F1@k in percent, as `elias evaluate` computes them.

    The matrices have a row per point and a column per label. `true_csr` has the true labels, `scores_csr` the scores of
    the predicted ones: the stored entries of a row, best first. PSP@k needs the labels of the training points as
    `train_csr`; `propensity` is "A,B", or "amazon", "wikipedia", "default". Pairs `(row, label)` of `filter` do not
    count. `at` has the numbers of answers k; what looks further than the longest row, such as R@100 of ten scores, is left
    out. Where scores are between 0 and 1, `at_best_threshold` has micro and macro F1 at the best threshold.

    >>> import numpy
    >>> true = numpy.array([[1, 0, 0], [0, 1, 1]])
    >>> scores = numpy.array([[0.9, 0.5, 0], [0.8, 0.1, 0]])
    >>> found = metrics(true, scores)
    >>> found["p@1"], found["f1@1"], found["n_points"]
    (50.0, 50.0, 2)
    """
    return _elias.metrics(
        _truth(true_csr, "the true labels"),
        csr_parts(scores_csr, "the scores"),
        None if train_csr is None else _truth(train_csr, "the training labels"),
        propensity,
        pairs_of(filter),
        cut_offs_of(at),
    )


def _truth(matrix: Any, what: str) -> tuple[Any, Any, Any, int]:
    """The matrix without stored zeros, which are no labels."""
    import numpy

    indptr, indices, data, n_cols = csr_parts(matrix, what)
    is_label = data != 0
    if not is_label.all():
        n_labels = numpy.concatenate([[0], numpy.cumsum(is_label, dtype=numpy.int64)])
        indptr, indices, data = n_labels[indptr], indices[is_label], data[is_label]
    return indptr, indices, data, n_cols
