"""BatchProgress sent ahead, by simulation: no worker idles while a call waits, and nobody waits longer for it."""

from __future__ import annotations

import heapq
import random
import statistics

import pytest

from panglot.engine.call import Call
from panglot.engine.pools import ahead
from panglot.engine.pools.queue import MANY, Policy, Queue

FIXED, EACH, LIMIT = 0.008, 0.0005, 32
"""Seconds of a batch and of each item in it, and the most items: a GPU, as in the study of other servers."""


class SimulatedWorker:
    """Runs what it holds, batch by batch. Between two batches that were not sent ahead lies the way to and fro."""

    def __init__(self) -> None:
        self.batches = ahead.BatchProgress()
        self.running: list[Call] = []
        self.next: list[Call] = []

    def most_of(self, lane: str) -> int:
        return LIMIT

    @property
    def sent_ahead(self) -> int:
        return len(self.next)

    def may_have_more(self) -> bool:
        return bool(self.running) and not self.next


class Simulation:
    """One pool under Poisson arrivals: the queue and the rules of the server, and no process."""

    def __init__(self, workers: int, load: float, trip: float, sends_ahead: bool, seed: int) -> None:
        self.queue = Queue(1 << 20, 1 << 60)
        self.workers = [SimulatedWorker() for _ in range(workers)]
        self.trip, self.sends_ahead = trip, sends_ahead
        self.chance = random.Random(seed)
        self.gap = (FIXED + EACH * LIMIT) / (LIMIT * workers * load)
        self.events: list[tuple[float, int, int]] = []
        self.latencies: list[float] = []
        self.idle_with_work = 0.0

    def run(self, count: int) -> Simulation:
        """Let so many calls arrive, and answer them all."""
        now = 0.0
        for number in range(count):
            now += self.chance.expovariate(1 / self.gap)
            heapq.heappush(self.events, (now, number, -1))
        while self.events:
            now, _, place = heapq.heappop(self.events)
            if place < 0:
                call = Call()
                call.arrived = now
                self.queue.append(call)
            else:
                self.end(self.workers[place], now)
            self.pump(now)
            following = self.events[0][0] if self.events else now
            if any(not worker.running for worker in self.workers):
                waits = self.queue.length or any(
                    worker.next and worker.batches.left(now) > ahead.SOON for worker in self.workers
                )
                self.idle_with_work += (following - now) if waits else 0.0
        return self

    def begin(self, worker: SimulatedWorker, calls: list[Call], now: float, trip: float) -> None:
        worker.running = calls
        worker.batches.begin(len(calls), now)
        took = trip + FIXED + EACH * len(calls)
        heapq.heappush(self.events, (now + took, 1 << 40, self.workers.index(worker)))

    def end(self, worker: SimulatedWorker, now: float) -> None:
        self.latencies += [now - call.arrived for call in worker.running]
        count, worker.running = len(worker.running), []
        following, worker.next = worker.next, []
        worker.batches.answered(count, len(following), now)
        if following:
            self.begin(worker, following, now, 0.0)

    def pump(self, now: float) -> None:
        """What `Dispatcher` does at the end of a turn of the loop."""
        free = [worker for worker in self.workers if not worker.running]
        if free and not self.queue.length:
            place = ahead.to_call_back(self.workers, now)
            if place >= 0:
                self.queue.put_back(self.workers[place].next)
                self.workers[place].next = []
        for worker in free:
            batch, _, _ = self.queue.take(Policy(LIMIT, 1 << 60), now)
            if batch:
                self.begin(worker, batch, now, self.trip)
        short_of_work = (
            ahead.short_of_work(self.workers) if self.sends_ahead and all(one.running for one in self.workers) else []
        )
        while short_of_work and ahead.is_enough(
            self.queue, self.workers[short_of_work[0]], 1 << 60, len(short_of_work)
        ):
            self.workers[short_of_work.pop(0)].next = self.queue.take(Policy(LIMIT, 1 << 60), now, share=MANY)[0]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("load", [0.02, 0.3, 0.6, 0.85, 0.95])
def test_no_worker_idles_while_a_call_waits_and_nobody_waits_longer(load: float, workers: int) -> None:
    plain = Simulation(workers, load, 0.0, False, 1).run(8000)
    early = Simulation(workers, load, 0.0, True, 1).run(8000)
    assert early.idle_with_work == plain.idle_with_work == 0
    assert len(early.latencies) == 8000
    mean, before = statistics.fmean(early.latencies), statistics.fmean(plain.latencies)
    assert mean <= before * 1.02
    if load <= 0.3:
        assert mean == before, "at low load nothing is different"


def test_it_hides_the_way_between_two_batches() -> None:
    """Above what fits with the way in between, the plain rule falls behind, and the early one does not."""
    trip = 0.012
    plain = Simulation(1, 0.9, trip, False, 2).run(20_000)
    early = Simulation(1, 0.9, trip, True, 2).run(20_000)
    assert statistics.fmean(early.latencies) < statistics.fmean(plain.latencies) / 3


def test_a_batch_is_done_with_its_last_answer() -> None:
    batches = ahead.BatchProgress()
    batches.begin(4, 10.0)
    assert not batches.answered(3, 3, 10.1), "one of four is missing; two were sent ahead"
    assert batches.answered(1, 2, 10.2)
    assert (batches.begun, batches.since) == (2, 10.2)
    assert batches.left(10.2) == pytest.approx(0.2)
    assert batches.left(10.45) < 0
    assert batches.left(11.0) == float("inf"), "it may as well never end"
    assert not batches.answered(2, 0, 10.3)
