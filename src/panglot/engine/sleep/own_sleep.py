"""The sleep of a model in a server with one front: decided and carried out in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from panglot.engine.call import Call, Fault
from panglot.engine.interface import ASLEEP, WAKING
from panglot.engine.sleep.calls_while_waking import WakingCalls
from panglot.engine.sleep.last_life import LastLife
from panglot.engine.sleep.own_workers import OwnWorkers
from panglot.engine.sleep.sleeper import Sleeper

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.pools.pool import Pool
    from panglot.engine.sleep.budget import MemoryBudget
    from panglot.engine.sleep.memory_use import MemoryUse


class OwnSleep:
    """An `EngineSleep` with a `Sleeper` of its own."""

    def __init__(self, engine: LocalEngine, budget: MemoryBudget | None, memory_use: MemoryUse | None) -> None:
        self._engine = engine
        self.on_sleep: Callable[[], None] = lambda: None
        # A lambda, because `on_sleep` is set later.
        workers = OwnWorkers(engine, memory_use, lambda: self.on_sleep())
        self.sleeper = Sleeper(workers, budget, engine.clock)
        self._calls = WakingCalls(engine, self.sleeper)

    @property
    def state(self) -> str:
        return self.sleeper.state

    @property
    def need(self) -> tuple[int | None, int | None]:
        return self.sleeper.need

    def start_first(self) -> None:
        self.sleeper.start_first()

    def resume(self, life: LastLife) -> None:
        self.sleeper.resume(life.seconds, life.memory, life.gpu_memory)

    def last_life(self) -> LastLife:
        workers = tuple(pool.supervisor.least for pool in self._engine.pools)
        return LastLife(self._engine.description, workers, self.sleeper.load_seconds, *self.sleeper.seen)

    def arrive(self, call: Call) -> Fault | None:
        """Wake a sleeping model for a call. Returns the refusal of a call that may not wait for this."""
        if self.sleeper.state not in (ASLEEP, WAKING):
            return None
        # First: a call that may not wait does not wake the model.
        fault = self._calls.refused(call, len(self._engine.entrance.queue))
        if fault is None and self.sleeper.state == ASLEEP:
            self.sleeper.wake()
        return fault

    def fault(self) -> Fault:
        return self._calls.fault()

    def loaded(self) -> None:
        self.sleeper.loaded()

    def worker_ended(self, pool: Pool) -> None:
        """Give back what a pool without workers still has, and let other models have the memory."""
        if self.sleeper.state == ASLEEP and not pool.workers:
            pool.supervisor.launcher.rest()
        if self.sleeper.budget is not None:
            self.sleeper.budget.look()

    def tick(self, now: float) -> None:
        self.sleeper.tick(now)
        if self.sleeper.state == WAKING:
            self._calls.refuse_late(now)

    def close(self) -> None:
        if self.sleeper.budget is not None:
            self.sleeper.budget.remove(self.sleeper)
