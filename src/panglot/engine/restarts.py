"""When a worker that died with nothing to do is replaced: at once the first time, then later and later."""

from __future__ import annotations

import math


class Restarts:
    """Pure bookkeeping of deaths without a culprit, at load or idle; `delay` is asked once per such death."""

    def __init__(self, first: float, longest: float) -> None:
        self.first = first
        self.longest = longest
        self.fruitless = 0
        """Deaths in a row without one answered request between them."""

    def answered(self) -> None:
        self.fruitless = 0

    def delay(self) -> float:
        """A worker died. How long to wait before its replacement starts."""
        self.fruitless += 1
        if self.fruitless < 2:
            return 0.0
        return float(min(self.longest, self.first * 2 ** min(self.fruitless - 2, 30)))


class Pace:
    """How soon something is done again: at once the first time, then later and later, until it has long not been."""

    def __init__(self, first: float, longest: float) -> None:
        self.first = first
        self.longest = longest
        self._pause = 0.0
        self._next = -math.inf

    def wait(self, now: float) -> float:
        """How long to wait before it may be done."""
        return max(0.0, self._next - now)

    def done(self, now: float) -> None:
        """It is done now, or will be as soon as it may."""
        quiet = now > self._next + self.longest
        self._pause = self.first if quiet else min(self.longest, 2 * self._pause or self.first)
        self._next = max(now, self._next) + self._pause
