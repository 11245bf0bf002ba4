"""When a worker that died with nothing to do is replaced: at once the first time, then later and later."""

from __future__ import annotations


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
