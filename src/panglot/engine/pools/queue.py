"""The queue of a pool: which calls run next. Does no I/O and reads no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from panglot.engine.call import QUEUED, Call

FULL = "full"
FREE = "free_worker"
WAITED = "waited"
ALONE = "alone"
MANY = 1 << 30
SKIPPED = 16
"""How many calls that wait no longer may stay in the list, beyond twice the calls that wait."""


class Policy(NamedTuple):
    """How large a batch may be, and how long its oldest item may wait for company."""

    max_items: int = 1
    max_bytes: int = 64 * 1024 * 1024
    max_wait: float = 0.0
    one_lane: bool = True
    """Whether all its calls must be of one lane."""


class Queue:
    """A bounded queue. Calls that were cancelled or answered are counted out at once, and skipped later."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self.max_items = max_items
        self.max_bytes = max_bytes
        self.length = 0
        self.bytes = 0
        self._calls: deque[Call] = deque()

    def __len__(self) -> int:
        return self.length

    def offer(self, call: Call) -> bool:
        """Queue a call, or refuse it because the queue is full."""
        # An empty queue takes a call of any size: there would never be more space for it.
        if self.length >= self.max_items or (self.length and self.bytes + call.size > self.max_bytes):
            return False
        # As `append` does, which would cost every request one more call.
        self._calls.append(call)
        self.length += 1
        self.bytes += call.size
        return True

    def append(self, call: Call) -> None:
        """Queue a call that was accepted by an earlier pool. Never refused."""
        self._calls.append(call)
        self.length += 1
        self.bytes += call.size

    def put_back(self, calls: Iterable[Call]) -> None:
        """Return calls to the head, keeping their order. Never refused: they were accepted once."""
        for call in reversed(list(calls)):
            call.state = QUEUED
            self._calls.appendleft(call)
            self.length += 1
            self.bytes += call.size

    def remove(self, call: Call) -> None:
        """Count out a call that was cancelled or answered elsewhere. Its state must no longer be QUEUED."""
        self.length -= 1
        self.bytes -= call.size
        if len(self._calls) > 2 * self.length + SKIPPED:
            # Behind a head that waits for long, calls that were cancelled would pile up.
            self._calls = deque(call for call in self._calls if call.state == QUEUED)

    def waiting(self) -> list[Call]:
        """The calls that wait, in order."""
        return [call for call in self._calls if call.state == QUEUED]

    def oldest(self) -> Call | None:
        calls = self._calls
        while calls and calls[0].state != QUEUED:
            calls.popleft()
        return calls[0] if calls else None

    def has_alike(self, lane: str, calls: int, size: int) -> bool:
        """Whether so many calls of a lane wait, or so many bytes of them."""
        for call in self._calls:
            if call.lane == lane and call.state == QUEUED:
                calls -= 1
                size -= call.size
                if calls <= 0 or size <= 0:
                    return True
        return False

    def take(
        self, policy: Policy, now: float, *, idle: bool = True, share: int = MANY
    ) -> tuple[list[Call], str, float]:
        """The next batch, why it was released, and, when nothing is released yet, the moment to ask again.

        `idle` says whether the worker has nothing else in flight: a call that must run alone needs that. `share` is how
        many calls to take at most because other free workers want some too.
        """
        first = self.oldest()
        if first is None:
            return [], "", 0.0
        if first.alone:
            return ([self._pop()], ALONE, 0.0) if idle else ([], "", 0.0)
        if policy.max_wait and self.length < policy.max_items and first.arrived + policy.max_wait > now:
            return [], "", first.arrived + policy.max_wait
        batch = [self._pop()]
        size = first.size
        reason = WAITED if policy.max_wait else FREE
        passed: list[Call] = []
        most, calls = min(policy.max_items, share), self._calls
        while calls and len(batch) < most:
            following = calls[0]
            if following.state != QUEUED:
                calls.popleft()
                continue
            if following.alone:
                break
            if policy.one_lane and following.lane != first.lane:
                passed.append(self._pop())
                continue
            size += following.size
            if size > policy.max_bytes:
                reason = FULL
                break
            batch.append(self._pop())
        if passed:
            # At the head: these calls of other lanes came before all that are left.
            self.put_back(passed)
        return batch, FULL if len(batch) == policy.max_items else reason, 0.0

    def _pop(self) -> Call:
        call = self._calls.popleft()
        self.length -= 1
        self.bytes -= call.size
        return call
