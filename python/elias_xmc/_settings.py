"""Settings by keyword.

The keyword of a setting is its key in `elias config` with `_` in the place of each `.`: `stage2.epochs` is
`stage2_epochs`, `rates.encoder` is `rates_encoder`.
"""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Mapping
from typing import Any

from . import _elias
from ._errors import EliasValueError
from ._types import PathLike
from ._inputs import path_of

__all__ = ["config", "keywords", "make_settings"]


def config(preset: str | None = None) -> str:
    """Every setting with its default and an explanation, as TOML: what `elias config` prints.

    >>> "batch_size = 256" in config()
    True
    """
    return _elias.commented_config(preset)


@functools.cache
def keywords() -> dict[str, str]:
    """The dotted key of each keyword."""
    return {key.replace(".", "_"): key for key in _elias.setting_keys()}


def make_settings(
    *, preset: str | None, encoder: PathLike | None, config: PathLike | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What the Rust half takes; None leaves a setting as it is."""
    given = {keyword: value for keyword, value in settings.items() if value is not None}
    return {
        "preset": preset,
        "encoder": None if encoder is None else path_of(encoder),
        "file": None if config is None else path_of(config),
        "assignments": [f"{_key(keyword)}={_toml(keyword, value)}" for keyword, value in given.items()],
    }


def _key(keyword: str) -> str:
    known = keywords()
    if keyword in known:
        return known[keyword]
    near = difflib.get_close_matches(keyword, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "elias_xmc.config() explains all of them"
    raise EliasValueError(f"unknown setting {keyword}; {hint}")


def _toml(keyword: str, value: Any) -> str:
    if hasattr(value, "item"):  # NumPy's numbers
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(keyword, one) for one in value)}]"
    raise EliasValueError(f"setting {keyword}: found {type(value).__name__}, expected a number, a string, True, False or a list")
