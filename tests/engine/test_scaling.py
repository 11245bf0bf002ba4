"""How many workers a pool is to have: decided on invented loads, and on a simulated pool with a clock of its own."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field

import pytest

from panglot.engine.workers.scaling import PoolLoad, Scaling
from panglot.settings.counts import WorkerCount

STEP = 0.25


@dataclass
class SimulatedPool:
    """Calls of equal length that arrive at random; new workers need a while to load."""

    seconds: float
    loading: float
    wanted: int = 1
    waiting: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    ready_at: float = 0.0
    ready: int = 1
    longest: float = 0.0

    def go_on(self, now: float, arrivals: list[float]) -> None:
        """Let everything happen that happens until this moment."""
        if now >= self.ready_at:
            self.ready = self.wanted
        self.waiting += arrivals
        while self.waiting:
            free = len(self.ends) < self.ready
            begin = self.waiting[0] if free else max(self.waiting[0], self.ends[0])
            if begin > now:
                break
            if not free:
                heapq.heappop(self.ends)
            self.longest = max(self.longest, begin - self.waiting.pop(0))
            heapq.heappush(self.ends, begin + self.seconds)
        while self.ends and self.ends[0] <= now:
            heapq.heappop(self.ends)

    def load(self, now: float) -> PoolLoad:
        return PoolLoad(
            wanted=self.wanted,
            settled=self.ready == self.wanted,
            busy=min(len(self.ends), self.ready),
            waiting=len(self.waiting),
            waited=now - self.waiting[0] if self.waiting else 0.0,
            turned_away=0,
        )

    def resize(self, now: float, wanted: int) -> None:
        if wanted > self.wanted:
            self.ready_at = now + self.loading
        self.wanted = wanted
        self.ready = min(self.ready, wanted)


def simulate(pool: SimulatedPool, scaling: Scaling, rates: list[tuple[float, float]]) -> list[tuple[float, int]]:
    """The sizes a pool had, each with the moment it got it. `rates` are seconds and calls per second during them."""
    chance = random.Random(1)
    sizes, now = [(0.0, pool.wanted)], 0.0
    for length, rate in rates:
        end = now + length
        while now < end:
            now += STEP
            count = sum(chance.random() < rate * STEP / 20 for _ in range(20))
            pool.go_on(now, sorted(now - STEP * chance.random() for _ in range(count)))
            decision = scaling.decide(pool.load(now), now)
            if decision is not None:
                pool.resize(now, decision.wanted)
                sizes.append((now, decision.wanted))
    return sizes


def test_more_soon_and_fewer_after_a_while() -> None:
    pool = SimulatedPool(seconds=0.5, loading=2.0)
    sizes = simulate(pool, Scaling(WorkerCount(1, 8), 0.5, 60), [(30, 0.2), (120, 10), (400, 0.2)])
    first_more = next(moment for moment, size in sizes if size > 1)
    assert 30 < first_more < 35
    most = max(size for _, size in sizes)
    assert 6 <= most <= 8, "ten calls a second of half a second keep five workers busy"
    assert max(moment for moment, size in sizes if size == most) < 60
    assert sizes[-1][1] == 1
    assert 150 + 60 < sizes[-1][0] < 150 + 180


@pytest.mark.parametrize("rate", [0.5, 1, 2, 3, 5, 7])
@pytest.mark.parametrize("seconds", [0.05, 0.5, 1.5])
def test_under_an_even_load_the_number_comes_to_rest(rate: float, seconds: float) -> None:
    pool = SimulatedPool(seconds, loading=3.0)
    hour = [(3600.0, min(rate, 6 / seconds))]
    sizes = simulate(pool, Scaling(WorkerCount(1, 8), 0.5, 60), hour)
    assert len([moment for moment, _ in sizes if moment > 1800]) <= 4, sizes


def test_waves_do_not_make_it_flap() -> None:
    """A peak every two minutes: the workers that come back again and again are kept."""
    pool = SimulatedPool(seconds=0.5, loading=3.0)
    waves = [(20.0, 8.0), (100.0, 0.1)] * 40
    sizes = simulate(pool, Scaling(WorkerCount(1, 8), 0.5, 60), waves)
    late = [size for moment, size in sizes if moment > 2400]
    assert len(late) <= 8, f"{len(late)} changes in twenty waves"


def a_load(**values: float) -> PoolLoad:
    usual = {"wanted": 2, "settled": True, "busy": 2.0, "waiting": 0, "waited": 0.0, "turned_away": 0}
    return PoolLoad(**{**usual, **values})  # type: ignore[arg-type]


def test_it_never_leaves_the_range() -> None:
    scaling = Scaling(WorkerCount(2, 4), 0.5, 1)
    chance = random.Random(2)
    wanted = 2
    for tick in range(20_000):
        busy, waited = chance.choice([0, wanted]), chance.choice([0.0, 9.0])
        values = {
            "waiting": chance.randrange(100),
            "turned_away": chance.randrange(3),
            "settled": chance.random() < 0.9,
        }
        decision = scaling.decide(a_load(wanted=wanted, busy=busy, waited=waited, **values), tick * STEP)
        if decision is not None:
            wanted = decision.wanted
        assert 2 <= wanted <= 4


def test_no_more_workers_than_can_have_work() -> None:
    scaling = Scaling(WorkerCount(1, 64), 0.5, 60)
    for count, at_once, expected in ((3, 1, 19), (64, 32, 18), (1000, 1, 32)):
        decision = Scaling(WorkerCount(1, 64), 0.5, 60).decide(
            a_load(wanted=16, busy=16, waiting=count, waited=1.0, at_once=at_once), 0.0
        )
        assert decision is not None
        assert decision.wanted == expected
    assert scaling.decide(a_load(waiting=3, waited=0.4), 0.0) is None


def test_whoever_is_turned_away_counts_though_nobody_waits_long() -> None:
    scaling = Scaling(WorkerCount(1, 8), 0.5, 60)
    assert scaling.decide(a_load(turned_away=0), 0.0) is None
    decision = scaling.decide(a_load(turned_away=5), 1.0)
    assert decision is not None
    assert (decision.wanted, decision.why) == (3, "requests were turned away")
    assert Scaling(WorkerCount(1, 8), 0.5, 60).decide(a_load(turned_away=5, busy=1.0), 1.0) is None


def test_nothing_changes_while_workers_are_missing_or_could_not_be_had() -> None:
    scaling = Scaling(WorkerCount(1, 8), 0.5, 60)
    assert scaling.decide(a_load(waiting=9, waited=3.0, settled=False), 0.0) is None
    scaling.pause(until=30.0)
    for now in (1.0, 10.0, 29.0):
        assert scaling.decide(a_load(waiting=9, waited=3.0), now) is None
    assert any(scaling.decide(a_load(waiting=9, waited=3.0), now) for now in (31.0, 33.0))


def test_a_wait_that_is_getting_shorter_asks_for_nothing() -> None:
    scaling = Scaling(WorkerCount(1, 64), 0.5, 60)
    wanted, waited = 2, 20.0
    for tick in range(200):
        decision = scaling.decide(a_load(wanted=wanted, busy=wanted, waiting=99, waited=waited), tick * STEP)
        if decision is not None:
            assert tick == 0, "the first look"
            wanted = decision.wanted
        waited *= math.exp(-STEP / 2)
