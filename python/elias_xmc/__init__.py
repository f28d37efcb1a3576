"""Extreme multi-label classification on the CPU you own.

>>> import elias_xmc
>>> texts = ["ripe red apple", "fast red car", "ripe green pear", "fast green bike"]
>>> labels = [["fruit", "red"], ["vehicle", "red"], ["fruit", "green"], ["vehicle", "green"]]
>>> model = elias_xmc.train(texts, labels, stage1_epochs=50)  # few texts need many passes
>>> model.predict("a ripe plum", k=1)[0].label
'fruit'

`train` makes a model, `load` opens one, `Model` answers, `learn` corrects one; `EliasClassifier` has scikit-learn's verbs. The modules `spark`,
`ray` and `dask` score on many machines.
Errors are `EliasError`, and `ValueError` or `FileNotFoundError` besides where Python has a word for the cause.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._elias import VERSION as __version__
from ._errors import EliasError
from ._model import Model, learn, load, merge
from ._metrics import metrics
from ._settings import config
from ._train import train
from ._types import Prediction

if TYPE_CHECKING:
    from ._classifier import EliasClassifier

__all__ = [
    "EliasClassifier",
    "EliasError",
    "Model",
    "Prediction",
    "__version__",
    "config",
    "learn",
    "load",
    "merge",
    "metrics",
    "train",
]


def __getattr__(name: str) -> Any:
    # scikit-learn, and what is for many machines, is imported only by those who use it.
    if name == "EliasClassifier":
        from ._classifier import EliasClassifier

        return EliasClassifier
    if name in ("dask", "ray", "spark"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
