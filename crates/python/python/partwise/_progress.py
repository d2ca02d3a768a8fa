"""What a run tells while it works."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Progress(NamedTuple):
    """Where a run is: what ``callback`` gets after every iteration."""

    restart: int
    """Which of the ``n_init`` runs, from 0."""
    iteration: int
    """Iterations done."""
    relative_error: float
    """The last error evaluated, ‖X − W H‖ / ‖X‖ in Frobenius norms."""
    seconds: float
    """Seconds of computing so far in this run."""


Callback = Callable[[Progress], object]


class Line:
    """A line on stderr that is written over, ten times a second at most."""

    def __init__(self, max_iter: int, n_init: int) -> None:
        self.max_iter, self.n_init = max_iter, n_init
        self.written, self.width = 0.0, 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.written < 0.1:
            return
        self.written = now
        run = f"run {progress.restart + 1}/{self.n_init}, " if self.n_init > 1 else ""
        text = (
            f"{run}iteration {progress.iteration}/{self.max_iter}, "
            f"error {progress.relative_error:.6f}, {progress.seconds:.1f} s"
        )
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def close(self) -> None:
        """Wipes the line."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


class Lines:
    """A line on stdout every ten iterations: ``verbose``."""

    def __call__(self, progress: Progress) -> None:
        if progress.iteration % 10 == 0:
            print(
                f"iteration {progress.iteration}: relative error {progress.relative_error:.6f}, "
                f"{progress.seconds:.3f} s"
            )


def joined(watchers: list[Callback]) -> Callable[[int, int, float, float], bool] | None:
    """One function for the compiled part, true to stop: every watcher is asked, and any may stop the run by False."""
    if not watchers:
        return None

    def call(*numbers: float) -> bool:
        progress = Progress(*numbers)  # type: ignore[arg-type]
        answers = [watch(progress) for watch in watchers]
        # Other values are no answer: None, or what the last call in a callback happened to return.
        return any(isinstance(answer, (bool, np.bool_)) and not answer for answer in answers)

    return call
