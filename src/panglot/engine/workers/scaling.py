"""How many workers a pool with a range of them is to have. This module only decides; it reads no clock."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from panglot.settings.counts import WorkerCount

SETTLE = 1.0
"""Seconds that new workers have at least, to show whether they are enough."""
IMPROVING = 0.8
"""A wait that is down to this part of what it was, one look ago, is taken to end by itself."""
TOLERANCE = 0.1
"""By how much, in workers, the busiest moment may exceed the number of workers that stay."""
PATIENCE = 8
"""How long workers stay at most that had to come back too often, in multiples of the idle time."""


@dataclass(frozen=True)
class PoolLoad:
    """What a pool looks like at a moment."""

    wanted: int
    settled: bool
    """Whether all the workers that are wanted are ready."""
    busy: float
    """How many workers have work; of one that runs several calls at a time, the part that is taken."""
    waiting: int
    """Calls that wait for a worker of this pool."""
    waited: float
    """How long the oldest of them has waited, in seconds."""
    turned_away: int
    """How many calls, since the start, found the queue full or waited in it until their deadline."""
    at_once: int = 1
    """Calls that a worker takes at once."""


@dataclass(frozen=True)
class Resize:
    """A decision: how many workers there are to be, and why."""

    wanted: int
    why: str


class Scaling:
    """Decides for one pool. The autoscaler asks it a few times a second.

    Up: as soon as calls wait for longer than `wait`, as many workers again as there are, unless fewer could take all
    that wait; then it looks whether that helps. Down: to the most workers that were busy together, for about as long as
    `wait`, in all of the last `idle` seconds. Workers that soon had to come back stay longer the next time.
    """

    def __init__(self, count: WorkerCount, wait: float, idle: float) -> None:
        self.count = count
        self.least = count.awake
        self.wait = wait
        self.idle = idle
        self.patience = 1
        self._busy = HighWater(wait)
        self._turned_away = 0
        self._surplus = math.inf
        self._look_at = self._not_before = self._changed = self._shrunk = -math.inf
        self._waited = 0.0

    def decide(self, load: PoolLoad, now: float) -> Resize | None:
        """The change to make now, if there is one. There is none while workers start or are missing."""
        if not load.wanted:
            # The model sleeps: a call wakes it, and nothing else starts workers.
            return None
        # Where calls wait for too long, all workers are needed, however busy they look at this moment.
        busy = max(load.busy, load.wanted) if load.waited > self.wait else load.busy
        self._busy.note(now, busy)
        turned_away = load.turned_away > self._turned_away and busy >= load.wanted
        self._turned_away = load.turned_away
        if not load.settled:
            # After infinity the first wait counts as an improvement: new workers get time to show that they are enough.
            self._look_at, self._waited = now + max(self.wait, SETTLE), math.inf
            return None
        return self._more(load, now, turned_away) or self._fewer(load, now)

    def pause(self, until: float) -> None:
        """Want no more workers before that moment: the last ones could not be had."""
        self._not_before = until

    # Up

    def _more(self, load: PoolLoad, now: float, turned_away: bool) -> Resize | None:
        if load.wanted >= self.count.most or not self._short(load, now, turned_away):
            return None
        if now - self._shrunk < 4 * self.patience * self.idle:
            # Soon after a step down: workers stay longer before the next one.
            self.patience = min(PATIENCE, 2 * self.patience)
        else:
            self.patience = 1
        self._changed, self._surplus = now, math.inf
        useful = max(1, math.ceil(load.waiting / load.at_once))
        wanted = min(self.count.most, load.wanted + min(load.wanted, useful))
        long = load.waited > self.wait
        return Resize(wanted, f"requests waited {load.waited:.1f} s for one" if long else "requests were turned away")

    def _short(self, load: PoolLoad, now: float, turned_away: bool) -> bool:
        """Whether calls wait for too long, and for no shorter a time than when it was last looked at."""
        if load.waited <= self.wait and not turned_away:
            self._waited = 0.0
            return False
        if now < max(self._look_at, self._not_before):
            return False
        improving = load.waited < IMPROVING * self._waited and not turned_away
        self._look_at, self._waited = now + max(self.wait, SETTLE), load.waited
        return not improving

    # Down

    def _fewer(self, load: PoolLoad, now: float) -> Resize | None:
        span = self.idle * self.patience
        if load.wanted <= self.least or now - self._changed < span:
            return None
        enough = max(self.least, math.ceil(self._busy.highest(now - span) - TOLERANCE))
        self._surplus = min(self._surplus, now) if enough < load.wanted else math.inf
        if now - self._surplus < min(4 * self.wait, span / 2):
            # What follows a peak goes down for a moment yet: better one step than several.
            return None
        self._changed, self._shrunk, self._surplus = now, now, math.inf
        return Resize(enough, f"{enough} {'was' if enough == 1 else 'were'} enough for {span:g} s")


class HighWater:
    """The highest level of a value. The value is smoothed over `seconds`, so that a short peak counts for little."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._level = 0.0
        self._noted = math.inf
        self._falling: deque[tuple[float, float]] = deque()
        """Moments and levels, of which each is lower than all before it."""

    def note(self, now: float, value: float) -> None:
        """Take in the value of this moment."""
        share = min(1.0, max(0.0, now - self._noted) / self.seconds)
        self._level += share * (value - self._level)
        self._noted = now
        while self._falling and self._falling[-1][1] <= self._level:
            self._falling.pop()
        self._falling.append((now, self._level))

    def highest(self, since: float) -> float:
        """The highest level since a moment; earlier ones are forgotten."""
        while len(self._falling) > 1 and self._falling[0][0] < since:
            self._falling.popleft()
        return self._falling[0][1] if self._falling else 0.0
