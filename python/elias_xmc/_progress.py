"""Bars for trainings: a line that is redrawn in a terminal or a notebook, plain lines anywhere else."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from ._errors import EliasValueError
from ._types import Event, OnEvent

__all__ = ["Bars", "observer"]

#: Seconds between two drawings.
REDRAW = 0.1
WIDTH = 24


@contextlib.contextmanager
def observer(progress: bool | OnEvent) -> Iterator[OnEvent | None]:
    """What receives the events of a training."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif progress is True:
        bars = Bars(sys.stderr)
        try:
            yield bars
        finally:
            bars.close()
    else:
        raise EliasValueError(f"progress: found {type(progress).__name__}, expected True, False or a function")


class Bars:
    """Draws the events of a training.

    >>> bars = Bars(sys.stdout)
    >>> bars({"event": "phase", "phase": "stage 1", "n_steps": 8})
    >>> bars({"event": "step", "phase": "stage 1", "step": 8, "n_points": 256, "loss": 1.5})
    >>> bars({"event": "epoch", "phase": "stage 1", "epoch": 1, "loss": 1.5})
    >>> bars.close()
    stage 1: 8/8, loss 1.500
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_live = _is_terminal(stream) or _is_notebook()
        self._phase = ""
        self._run = ""
        self._step = self._n_steps = 0
        self._loss = 0.0
        self._started = self._drawn = time.monotonic()
        self._n_chars = 0

    def __call__(self, event: Event) -> None:
        kind = event["event"]
        if kind == "phase":
            self._finish_phase()
            self._phase, self._n_steps = event["phase"], event["n_steps"]
            self._step, self._loss = 0, 0.0
            self._started = time.monotonic()
            self._draw()
        elif kind == "step":
            self._step, self._loss = event["step"], event["loss"] or self._loss
            if self._drawn + REDRAW <= time.monotonic():
                self._draw()
        elif kind == "member":
            self._finish_phase()
            if event["n_members"] > 1:
                self._run = f"training {event['member'] + 1} of {event['n_members']}: "
        elif kind == "validation":
            self._say(f"epoch {event['epoch']} of {event['phase']}: P@1 {event['p@1']:.2f}, R@100 {event['r@100']:.2f}")
        elif kind == "calibration":
            self._say(f"calibrated on {event['n_points']} points, P@1 {event['p@1']:.2f} there")
        elif kind == "calibration_skipped":
            self._say(f"not calibrated: {event['n_points']} points could be held out, {event['n_needed']} are needed")
        elif kind == "checkpoints_damaged":
            self._say("the checkpoints are damaged: starting at the beginning")

    def close(self) -> None:
        """Ends the last line."""
        self._finish_phase()

    def _finish_phase(self) -> None:
        if self._phase and self._n_steps:
            self._say(self._line(is_done=True))
        self._phase = ""

    def _line(self, is_done: bool = False) -> str:
        words = f"{self._run}{self._phase}"
        if self._n_steps:
            words += f": {self._step}/{self._n_steps}"
        if self._loss:
            words += f", loss {self._loss:.3f}"
        if not self._is_live:
            return words
        seconds = time.monotonic() - self._started
        if is_done or not self._n_steps:
            return f"{words}, {_duration(seconds)}"
        share = min(1.0, self._step / self._n_steps)
        filled = round(WIDTH * share)
        bar = "█" * filled + "░" * (WIDTH - filled)
        left = f", {_duration(seconds / share - seconds)} left" if share else ""
        return f"{bar} {100 * share:3.0f} % {words}{left}"

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._is_live and self._phase:
            line = self._line()
            self._write("\r" + line.ljust(self._n_chars))
            self._n_chars = len(line)

    def _say(self, line: str) -> None:
        if self._is_live:
            line = "\r" + line.ljust(self._n_chars)
        self._n_chars = 0
        self._write(line + "\n")

    def _write(self, text: str) -> None:
        # A closed stream is no reason to end a training, nor is one that cannot show a block.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
