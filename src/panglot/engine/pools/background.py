"""Which workers jobs get beside requests: workers that requests do not need, and beyond these a share of all time.

"Requests first" is not enough: a job that runs cannot be pushed aside, and the next request waits for its end. So jobs
leave alone as many workers as requests are expected to want at once. Beyond that a job starts only on credit, which
grows by a share of all workers' time: however many requests come, jobs never starve. When requests have paused for
clearly longer than they did lately, none is expected, and jobs have every worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from panglot.engine.pools.queue import MANY, Queue

if TYPE_CHECKING:
    from panglot.engine.workers.worker import Worker

WINDOW = 10.0
"""Seconds over which the number of requests is averaged, and for which credit gathers."""
NO_JOB, IN_SPARE, ON_CREDIT = 0, 1, 2
"""Whether a worker takes a job: not now, because requests do not need it, or on credit."""
FEW = 0.01
"""A mean number of requests below which there are none."""
QUIET = 1.0
"""Seconds without a request that are a pause, even where there was none lately."""
MEMORY = 300.0
"""Seconds over which the longest pause between requests fades."""


class InteractiveLoad:
    """The mean number of requests in a pool at a time, waiting or running. It fades over WINDOW seconds."""

    def __init__(self) -> None:
        self.mean = 0.0
        self._total = 0.0
        self._pause = self._longest_pause = 0.0

    def add(self, total: float, present: int, seconds: float) -> None:
        """Count the requests of some seconds: `total` is the time that all requests so far took, `present` how many
        are there now."""
        # By Little's law: the time that all requests of a while took, divided by this while. Requests pay nothing.
        # Long requests count while they run, short ones when they are answered.
        number = max((total - self._total) / seconds, float(present))
        self._total = total
        self._note_pause(number, seconds)
        fade = math.exp(-seconds / WINDOW)
        self.mean = self.mean * fade + number * (1 - fade)

    def _note_pause(self, number: float, seconds: float) -> None:
        self._longest_pause *= math.exp(-seconds / MEMORY)
        if not number:
            self._pause += seconds
            return
        # Where the mean has faded, this was no pause between requests: they had ended, and these are new ones.
        if self.mean >= FEW:
            self._longest_pause = max(self._longest_pause, self._pause)
        self._pause = 0.0

    def need(self, most: int) -> int:
        """How many of so many workers requests are expected to want at once."""
        mean = min(self.mean, most)
        # Without the second condition, the only worker would idle beside waiting jobs until the mean has faded.
        if mean < FEW or self._pause >= QUIET + 2 * self._longest_pause:
            return 0
        return min(most, math.ceil(mean + math.sqrt(mean)))


class BackgroundQueue:
    """The jobs of a pool that wait, and the credit of those that run. It exists only while there are jobs."""

    PAUSE = 0.05
    """Seconds after which a pool with jobs is looked at again: credit grows, and requests become fewer."""

    def __init__(self, share: float, workers: int, now: float) -> None:
        """`share` is the part of all time that jobs have in any case; `workers` how many they may use."""
        self.queue = Queue(MANY, MANY)
        self.capacity = 0
        """How many calls the pool can run at a time."""
        self.running = 0
        """How many of these are jobs."""
        self._share = share
        self._most = workers
        self._credit = share
        self._at = now
        self._on_credit: dict[Worker, float] = {}
        """The workers that run a job on credit, and since when."""

    def look(self, workers: Iterable[Worker], now: float) -> None:
        """Count capacity and running jobs, and pay for the jobs on credit that have ended."""
        self.capacity = self.running = 0
        busy = set()
        for worker in workers:
            jobs = sum(call.background for call in worker.in_flight.values())
            several = worker.slots > 1
            self.capacity += worker.open_slots if several else 1
            self.running += jobs if several else bool(jobs)
            if jobs:
                busy.add(worker)
        grown = self._share * self.capacity
        self._credit = min(self._credit + grown * (now - self._at), grown * WINDOW)
        self._at = now
        for worker in [worker for worker in self._on_credit if worker not in busy]:
            self._credit -= now - self._on_credit.pop(worker)

    def occupies(self, worker: Worker) -> bool:
        """Whether a worker runs a job, behind which no request may wait."""
        return worker.slots == 1 and any(call.background for call in worker.in_flight.values())

    def next(self, need: int, requests_wait: bool) -> int:
        """Whether the next free worker takes a job. `need` is how many workers requests want."""
        if not self.queue.length or self.running >= self._most:
            return NO_JOB
        if self.running < self.capacity - need and not requests_wait:
            return IN_SPARE
        # Requests that wait go first, also where they need no worker in advance: but for the share of the jobs. Where
        # several calls can run at a time, jobs on credit leave one of these places to requests.
        if self._credit > 0 and self.running < max(1, self.capacity - 1):
            return ON_CREDIT
        return NO_JOB

    def more(self) -> int:
        """How many more jobs may run."""
        return max(0, self._most - self.running)

    def free(self, idle: int, need: int, requests_wait: bool) -> int:
        """How many more jobs are welcome here, beyond those that wait: one by one for each worker that requests spare,
        and one that waits for credit."""
        most = self._most - self.running - self.queue.length
        spare = 0 if requests_wait else min(idle, self.capacity - need - self.running) - self.queue.length
        on_credit = not self.queue.length and self.running < max(1, self.capacity - 1)
        return max(0, min(most, max(spare, int(on_credit)))) if self.capacity else 0

    def started(self, worker: Worker, on_credit: bool, now: float) -> None:
        """Count a job that was sent to a worker just now."""
        if any(call.background for call in worker.in_flight.values()):
            self.running += 1
            if on_credit:
                self._on_credit.setdefault(worker, now)


def job_capacity(workers: Sequence[Worker]) -> int:
    """How many jobs a pool can have at a time: as many as run, and a next one for each worker.

    Without a worker it is one job, which wakes the model.
    """
    return max(1, sum(max(worker.at_once, 1) for worker in workers) + len(workers))
