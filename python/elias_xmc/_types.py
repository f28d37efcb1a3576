"""Small types that several modules share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

__all__ = ["Event", "Labels", "OnEvent", "PathLike", "Prediction"]


class Prediction(NamedTuple):
    """One predicted label."""

    #: The name of the label.
    label: str
    #: How relevant it is: ranks the labels of one text.
    score: float
    #: The probability that it is right; None if the model is not calibrated.
    probability: float | None


PathLike = Union[str, "os.PathLike[str]"]

#: The labels of each point: a name, names, or names with their relevance; or a sparse matrix with a column per label.
Labels = Union[Sequence[Union[str, Iterable[str], Mapping[str, float]]], Any]

#: An event of a training: `event["event"]` is its kind, the other keys are its fields.
Event = dict[str, Any]

OnEvent = Callable[[Event], object]
