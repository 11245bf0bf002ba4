"""How much memory workers use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from panglot.machine.gpu_memory import Gpus

if TYPE_CHECKING:
    from panglot.engine.workers.worker import Worker


class MemoryUse:
    """Looks at the workers of one process, on its event loop; at their GPU memory only where that has a budget."""

    def __init__(self, with_gpus: bool, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._gpus = Gpus() if with_gpus else None

    def of(self, workers: Sequence[Worker], since: float) -> tuple[int, int | None]:
        """Bytes of memory that workers use, which are ready since then, and of GPU memory; None: not known."""
        return sum(worker.memory() for worker in workers), self._gpu(workers, since)

    def _gpu(self, workers: Sequence[Worker], since: float) -> int | None:
        if self._gpus is None:
            return None
        self._gpus.look(self._clock(), since)
        # The figures come later. Those from before the workers were ready do not show all of their memory.
        known = self._gpus.as_of >= since
        return sum(self._gpus.memory.get(worker.pid, 0) for worker in workers) if known else None
