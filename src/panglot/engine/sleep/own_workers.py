"""The workers of a model that are processes of this front, for its sleep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from panglot.engine.workers.worker import LOADING, STARTING

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.sleep.memory_use import MemoryUse


class OwnWorkers:
    """A `Sleepable` whose workers all belong to one engine."""

    def __init__(
        self, engine: LocalEngine, memory_use: MemoryUse | None, on_sleep: Callable[[], None] = lambda: None
    ) -> None:
        self._engine = engine
        self._use = memory_use
        self._on_sleep = on_sleep
        settings = engine.settings
        self.name = engine.package.name
        self.sleep_after, self.timeout = settings.sleep_after, settings.timeout
        self.memory, self.gpu_memory = settings.memory, settings.gpu_memory

    @property
    def is_draining(self) -> bool:
        return self._engine.draining

    @property
    def has_calls(self) -> bool:
        return bool(self._engine.live)

    @property
    def is_busy(self) -> bool:
        return self.has_calls or any(worker.in_flight for pool in self._engine.pools for worker in pool.workers)

    @property
    def done(self) -> int:
        return self._engine.done

    @property
    def is_settled(self) -> bool:
        # Workers that retain memory may run streams, which are no calls: their model never sleeps.
        workers = (worker for pool in self._engine.pools for worker in pool.workers)
        retains = bool(self._engine.package.retained_bytes)
        return self.is_loaded and not retains and not any(worker.state in (STARTING, LOADING) for worker in workers)

    @property
    def is_loaded(self) -> bool:
        return all(pool.supervisor.is_ready for pool in self._engine.pools)

    @property
    def has_workers(self) -> bool:
        return any(pool.workers for pool in self._engine.pools)

    def retire_workers(self, reason: str) -> None:
        for pool in self._engine.pools:
            pool.supervisor.sleep()
        if reason:
            self._engine.metrics.sleeps[reason] += 1
            self._on_sleep()

    def start_workers(self) -> None:
        for pool in self._engine.pools:
            # The end of a worker may give memory to a model that waits for it while the server stops.
            if not pool.supervisor.stopping:
                pool.supervisor.wake()

    def count_wake(self) -> None:
        self._engine.metrics.wakes += 1

    def used(self, since: float) -> tuple[int, int | None]:
        workers = [worker for pool in self._engine.pools for worker in pool.workers]
        return self._use.of(workers, since) if self._use is not None else (0, None)
