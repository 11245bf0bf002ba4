"""When a worker that died with nothing to do is replaced: at once the first time, then later and later."""

from __future__ import annotations

import math


class Restarts:
    """Counts deaths without a culprit, at load or idle. `delay` is called once for each."""

    def __init__(self, first: float, longest: float) -> None:
        self.first = first
        self.longest = longest
        self.fruitless = 0
        """Deaths in a row without one answered request between them."""

    def answered(self) -> None:
        """Begin to count anew: a worker has answered, or has long been ready."""
        self.fruitless = 0

    def delay(self) -> float:
        """Count a death, and return how many seconds to wait before the replacement starts."""
        self.fruitless += 1
        if self.fruitless < 2:
            return 0.0
        # The exponent is bounded: after a thousand deaths the power would be too large for a float.
        return float(min(self.longest, self.first * 2 ** min(self.fruitless - 2, 30)))


class Pace:
    """How soon an action may be repeated: at once the first time, then later and later, until a long pause."""

    def __init__(self, first: float, longest: float) -> None:
        self.first = first
        self.longest = longest
        self._pause = 0.0
        self._next = -math.inf

    def wait(self, now: float) -> float:
        """How many seconds to wait before the action may be taken."""
        return max(0.0, self._next - now)

    def reset(self) -> None:
        """Begin anew: the next time is the first."""
        self._pause, self._next = 0.0, -math.inf

    def done(self, now: float) -> None:
        """Note that the action is taken now, or as soon as it may be."""
        quiet = now > self._next + self.longest
        self._pause = self.first if quiet else min(self.longest, 2 * self._pause or self.first)
        self._next = max(now, self._next) + self._pause
