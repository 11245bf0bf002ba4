"""Calls that a script asks to have tried again, on another worker than the one that said so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from panglot.engine.call import RUNNING, Call
from panglot.engine.workers.worker import Worker


class Retries:
    """Holds such calls until another worker has room. It only decides; the pool sends."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: list[tuple[Call, Worker]] = []

    def take(self, call: Call, worker: Worker, workers: Sequence[Worker]) -> bool:
        """Keep the call, unless it has been tried often enough or there is nobody else to try."""
        if call.retried >= self.most or all(candidate is worker for candidate in workers):
            return False
        call.retried += 1
        self.waiting.append((call, worker))
        return True

    def drop_given_up(self) -> None:
        """Forget calls that nobody waits for any more."""
        self.waiting = [(call, refuser) for call, refuser in self.waiting if call.state == RUNNING]

    def ready(self, workers: Sequence[Worker], room: Callable[[Worker], int]) -> Iterator[tuple[Call, Worker]]:
        """Calls that can run now, each with its worker."""
        waiting, self.waiting = self.waiting, []
        for call, refuser in waiting:
            others = [worker for worker in workers if worker is not refuser] or workers
            free = next((worker for worker in others if room(worker) > 0), None)
            if free is None:
                self.waiting.append((call, refuser))
            else:
                yield call, free
