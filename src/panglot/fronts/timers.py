"""Delayed actions for a loop without asyncio."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable


class Timers:
    """Actions by the moment they are due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def now(self) -> float:
        return self._clock()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        # The number decides between actions that are due at one moment: actions cannot be compared.
        heapq.heappush(self._due, (self._clock() + seconds, next(self._order), action))

    def wait(self) -> float | None:
        """Seconds until the next action is due; None without an action."""
        return max(0.0, self._due[0][0] - self._clock()) if self._due else None

    def run(self) -> None:
        """Run all actions that are due."""
        while self._due and self._due[0][0] <= self._clock():
            heapq.heappop(self._due)[2]()
