"""When calls are overdue: one timer for the earliest of all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection

from panglot.engine.call import QUEUED, Call


class Deadlines:
    """Watches the deadlines of open calls, and how long they wait for a worker. Calls `overdue` with each late call."""

    def __init__(
        self,
        calls: Collection[Call],
        clock: Callable[[], float],
        queue_timeout: float,
        overdue: Callable[[Call, float], None],
    ) -> None:
        self._calls = calls
        self._clock = clock
        self._queue_timeout = queue_timeout
        self._overdue = overdue
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, call: Call) -> None:
        """Watch a call that was queued. Its end needs no notice: the timer may fire in vain."""
        due = self.due(call) if self._queue_timeout else call.deadline
        if due < self._next:
            self._arm(due)

    def due(self, call: Call) -> float:
        """When a call is overdue: at its deadline, or earlier while it waits for a worker."""
        # A call that runs again after the death of its worker has waited in the queue before.
        if self._queue_timeout and call.state == QUEUED and not call.alone and not call.background:
            return min(call.deadline, call.arrived + self._queue_timeout)
        return call.deadline

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = deadline
        if deadline < math.inf:
            delay = max(0.0, deadline - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        # An answer does not change the timer, so the timer may fire for a call that has gone: perhaps nobody is late.
        now = self._clock()
        # A list first: `overdue` takes calls out of the set.
        late = [call for call in self._calls if self.due(call) <= now]
        for call in late:
            self._overdue(call, now)
        self._timer = None
        # A call that was submitted amid these answers armed nothing, since `_next` is past: it is among the calls here.
        self._arm(min(map(self.due, self._calls), default=math.inf))
