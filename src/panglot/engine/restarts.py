"""When a dead worker is replaced: at once while the pool is useful, later and later while it is not."""

from __future__ import annotations


class Restarts:
    """Pure bookkeeping of deaths; `delay` is asked once per death."""

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
