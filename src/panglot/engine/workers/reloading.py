"""Loading a script anew: which workers are still to be replaced."""

from __future__ import annotations

from collections.abc import Callable

from panglot.engine.workers.worker import LOADING, READY, STARTING, Worker


class Reloads:
    """Replaces the workers of one pool, one at a time. `replace` starts the successor of a worker."""

    def __init__(self, workers: list[Worker], replace: Callable[[Worker], None]) -> None:
        self._workers = workers
        self._replace = replace
        self._left: list[Worker] = []

    def begin(self) -> None:
        """Replace all workers that there are, those that load too: they may have read the old files."""
        self._left = list(self._workers)
        self.next()

    def next(self) -> None:
        """Replace one worker that is ready. Those still loading, perhaps the old script, come once they are."""
        self._left = [worker for worker in self._left if worker.state in (STARTING, LOADING, READY)]
        for worker in self._left:
            if worker.state == READY:
                self._left.remove(worker)
                self._replace(worker)
                return

    @property
    def are_under_way(self) -> bool:
        """Whether a worker is still to be replaced, or its successor still loads."""
        return bool(self._left) or any(worker.predecessor is not None for worker in self._workers)

    def give_up(self) -> None:
        """Leave the other workers as they are: their successors would load the same files."""
        self._left.clear()
