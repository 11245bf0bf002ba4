"""The rate at which jobs have ended lately: it tells when there may be a place for another job."""

from __future__ import annotations

import math
import time
from collections import deque

WINDOW = 60
"""Seconds that count as lately, and the most that a client is told to wait."""


class EndingPace:
    """The ends of jobs, of each model."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._ends: dict[str, deque[float]] = {}

    def note(self, model: str) -> None:
        """Count the end of a job."""
        # More than one in a second need not be told apart.
        self._ends.setdefault(model, deque(maxlen=WINDOW)).append(time.monotonic())

    def seconds_to_next(self, model: str = "") -> int:
        """Whole seconds in which about one job of a model ends, or of any model: 1 to 60."""
        now = time.monotonic()
        kept = [self._ends.get(model, ())] if model else self._ends.values()
        ended = sum(now - end < WINDOW for ends in kept for end in ends)
        return max(1, math.ceil(min(WINDOW, now - self._began) / (ended + 1)))
