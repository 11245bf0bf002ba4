"""How long a model that was woken too soon stays awake. This module only decides; it reads no clock."""

from __future__ import annotations

MOST = 4
"""How many times as long as usual a model stays awake at most."""
WORTHWHILE = 10
"""A sleep pays off when it is so many times as long as loading takes."""


class SleepDamping:
    """Damps a model that falls asleep and wakes in turns: each sleep that was too short doubles the time awake."""

    def __init__(self) -> None:
        self.factor = 1

    def woken(self, slept: float, load: float) -> bool:
        """Note how long a woken model had slept, and how long it loads. Whether it stays awake longer from now on."""
        if slept >= WORTHWHILE * load:
            self.factor = 1
            return False
        before, self.factor = self.factor, min(MOST, 2 * self.factor)
        return self.factor > before

    def stay(self, load: float, most: float) -> float:
        """For how many seconds after its waking a model is not put to sleep for another, at most `most`."""
        return min(load * self.factor, most)
