"""Calls that a script refuses to answer in one worker: they are tried in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from panglot.engine.call import RUNNING, Call
from panglot.engine.workers.worker import Worker


class Retries:
    """The calls that wait for another worker with free slots. This class only decides; the dispatcher sends."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: list[tuple[Call, Worker]] = []

    def take(self, call: Call, worker: Worker, workers: Sequence[Worker]) -> bool:
        """Store the call, unless it has been tried often enough or there is no other worker."""
        if call.retried >= self.most or all(candidate is worker for candidate in workers):
            return False
        call.retried += 1
        self.waiting.append((call, worker))
        return True

    def drop_cancelled(self) -> None:
        """Drop calls that were cancelled or have their answer."""
        self.waiting = [(call, refuser) for call, refuser in self.waiting if call.state == RUNNING]

    def ready(self, workers: Sequence[Worker], free_slots: Callable[[Worker], int]) -> Iterator[tuple[Call, Worker]]:
        """Calls that can run now, each with its worker."""
        waiting, self.waiting = self.waiting, []
        # A generator: each call is sent before the next is looked at, so that free slots are counted anew.
        for call, refuser in waiting:
            # The other workers may have died since `take`: the same worker is better than none.
            others = [worker for worker in workers if worker is not refuser] or workers
            # A call that may have killed a worker runs alone: another call could be lost, or blamed, with it.
            takers = (worker for worker in others if free_slots(worker) > 0 and not (call.alone and worker.in_flight))
            free = next(takers, None)
            if free is None:
                self.waiting.append((call, refuser))
            else:
                yield call, free
