"""Calls that wait in a worker behind one that takes unexpectedly long: they are taken back for the other workers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from panglot.engine.workers.worker import Worker

RECALL_AFTER = 0.1
"""Seconds after which calls that wait in a worker are taken back, if another worker may have them."""
SECOND_LOOK = 0.005
"""Seconds between seeing that a call waits for too long and taking it back."""


class Recalls:
    """The timer of one pool that looks at calls which wait in workers. It runs only while there may be such calls."""

    def __init__(
        self, workers: Sequence[Worker], clock: Callable[[], float], take_back: Callable[[Worker, int], None]
    ) -> None:
        """`take_back` returns all calls of a worker to the queue, except the first ones, which it has begun."""
        self.watching = False
        self._workers = workers
        self._clock = clock
        self._take_back = take_back
        self._suspected: set[int] = set()
        """Calls that waited for too long at the last look."""

    def watch(self, seconds: float = RECALL_AFTER) -> None:
        """Look at the workers in so many seconds. Must not be called while `watching`."""
        self.watching = True
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Take back calls that have waited for too long at two looks, and decide when to look again."""
        self.watching = False
        now = self._clock()
        suspected, self._suspected = self._suspected, set()
        following = RECALL_AFTER
        waiting = False
        for worker in list(self._workers):
            call = next(itertools.islice(worker.in_flight.values(), worker.begun, None), None)
            if call is None:
                continue
            waiting = True
            left = call.dispatched + RECALL_AFTER - now
            if left > 0:
                following = min(following, left)
            elif self._another_may(worker, now):
                # A front that stood still looks before it has read the answers that came meanwhile: the call may be
                # done. At the second look these answers have been read.
                following = SECOND_LOOK
                if call.id in suspected and worker.is_held_up(now):
                    self._take_back(worker, worker.begun)
                else:
                    self._suspected.add(call.id)
        if waiting:
            self.watch(max(following, SECOND_LOOK))

    def _another_may(self, worker: Worker, now: float) -> bool:
        """Whether another worker may have the calls of this one, now or, where calls are short, soon."""
        others = (other for other in self._workers if other is not worker)
        if worker.batched:
            return any(other.free_slots(now) > 0 for other in others)
        return any(other.takes_calls for other in others)
