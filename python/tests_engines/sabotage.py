"""Workers that die once, in the middle of their work, as by `kill -9`.

A file that a worker makes before it dies lets the next one live.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, fields
from typing import Any

import elias_xmc.ray
from elias_xmc import _elias
from elias_xmc._engines import Scoring
from elias_xmc._train import prepare

_n_batches = 0


def die_once(flag: str) -> None:
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class DyingScoring(Scoring):
    """Dies with the second batch of a process."""

    flag: str = ""

    def answers(self, texts: Any) -> list[Any]:
        global _n_batches
        _n_batches += 1
        if _n_batches == 2:
            die_once(self.flag)
        return super().answers(texts)


class DyingScorings:
    """In the place of the class `Scoring` of a module."""

    def __init__(self, flag: object) -> None:
        self.flag = str(flag)

    def of(self, *arguments: Any) -> DyingScoring:
        scoring = Scoring.of(*arguments)
        values = {field.name: getattr(scoring, field.name) for field in fields(scoring)}
        return DyingScoring(**values, flag=self.flag)


_train_run = elias_xmc.ray._train_run


def train_run_and_die(data: Any, place: str, run: int, options: dict[str, Any]) -> None:
    """In the place of `_train_run`: the second run dies in its second stage."""
    flag = place + ".died"
    if run != 1 or os.path.exists(flag):
        return _train_run(data, place, run, options)

    def follow(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["phase"] == "stage 2":
            die_once(flag)

    texts, labels = data
    call = prepare(texts, labels, out=place, resume=True, **options)
    call.run["only_run"] = run
    _elias.train(*call, follow)
    raise AssertionError("it should have died")
