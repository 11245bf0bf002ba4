"""Batches and calls that busy workers are sent early, so that they go on without a pause. This module only decides.

Where calls run one by one, `WorkerPace` says how many a worker may have. Of workers that take batches, none shall have
a batch in store while another has nothing to do. So a batch is sent ahead only when all workers are busy and there is a
full one for each that has none, and it is called back when a worker becomes free first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from panglot.engine.pools.queue import Queue

SOON = 0.005
"""Seconds: a batch that is expected to begin within them is not called back."""
OVERDUE = 0.1
"""Seconds after which a batch that should have ended may as well take for ever."""

NEXT_BELOW = 2000.0
"""Microseconds that a call may take for the next one to be sent before it is answered."""


class WorkerPace:
    """How long a call takes in a worker that runs calls one by one, and how many calls it may therefore have."""

    __slots__ = ("most_if_many_wait", "service_us", "window")

    def __init__(self) -> None:
        self.service_us = -1.0
        """Microseconds that a call takes, as learnt; negative: nothing is known, and the first call is sent alone."""
        self.window = 1
        """How many calls are about a millisecond of work."""
        self.most_if_many_wait = 1
        """How many it may have when all workers can have a next one: the next call of a worker lies in its socket when
        it has answered the last, and does not wait for the front."""

    def learn(self, took: int) -> None:
        """Note how many microseconds a call took. `settle` makes it count."""
        before = self.service_us
        self.service_us = took if before < 0 else before + 0.2 * (took - before)

    def settle(self) -> None:
        """Compute anew how many calls the worker may have: once per frame of answers, not for each of them."""
        service_us = self.service_us
        if service_us < 0:
            return
        # Compared, not `max` and `min`: this runs for nearly every request. `+ 1`, because a call may take 0 us.
        window = int(1000 / (service_us + 1)) or 1
        self.window = window = window if window < 32 else 32
        self.most_if_many_wait = 2 if window == 1 and service_us < NEXT_BELOW else window


class BatchProgress:
    """How far a worker that takes batches is. Of its calls the first `begun` belong to the batch that runs."""

    __slots__ = ("begun", "seconds", "since")

    def __init__(self) -> None:
        self.begun = 0
        self.since = 0.0
        self.seconds = 0.0
        """How long a batch takes, as learnt."""

    def begin(self, count: int, now: float) -> None:
        self.begun, self.since = count, now

    def answered(self, count: int, left: int, now: float) -> bool:
        """Note `count` answers. True when the batch has ended and the `left` calls, which were sent ahead, begin."""
        self.begun -= count
        if self.begun > 0 or not count:
            return False
        took = now - self.since
        self.seconds += (0.2 if self.seconds else 1.0) * (took - self.seconds)
        self.begin(left, now)
        return left > 0

    def left(self, now: float) -> float:
        """Seconds until the batch that runs is expected to end."""
        left = self.since + self.seconds - now
        return math.inf if left < -OVERDUE else left


class Busy(Protocol):
    """A worker, as far as it matters here."""

    batches: BatchProgress

    def most_of(self, lane: str) -> int:
        """The most calls of a lane in one batch."""

    @property
    def sent_ahead(self) -> int:
        """How many calls the worker has that it has not begun."""

    def may_have_more(self) -> bool:
        """Whether the worker runs a batch and could be given the next."""


def short_of_work(workers: Sequence[Busy]) -> list[int]:
    """The busy workers without a next batch, by their index in the list; the one that began first comes first."""
    indices = [index for index, worker in enumerate(workers) if worker.may_have_more()]
    return sorted(indices, key=lambda index: workers[index].batches.since) if indices else indices


def is_enough(queue: Queue, worker: Busy, batch_bytes: int, short_of_work: int) -> bool:
    """Whether a full batch, of calls in the lane of the oldest, waits for each of the workers that have none."""
    first = queue.oldest()
    if first is None or first.alone:
        return False
    calls, size = worker.most_of(first.lane) * short_of_work, batch_bytes * short_of_work
    # First, because it costs nothing: `has_alike` walks the queue.
    if queue.length < calls and queue.bytes < size:
        return False
    return queue.has_alike(first.lane, calls, size)


def to_call_back(workers: Sequence[Busy], now: float) -> int:
    """The index of the worker whose next batch begins last, if that is not soon; -1 when there is none."""
    ahead = [index for index, worker in enumerate(workers) if worker.sent_ahead > 0]
    latest = max(ahead, key=lambda index: workers[index].batches.left(now), default=-1)
    return latest if latest >= 0 and workers[latest].batches.left(now) > SOON else -1
