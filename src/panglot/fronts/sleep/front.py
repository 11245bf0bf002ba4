"""The sleep of a model in one front of several, which carries out the orders of the parent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from panglot.engine.call import Call, Fault
from panglot.engine.engine import LocalEngine
from panglot.engine.interface import ASLEEP, WAKING
from panglot.engine.sleep.calls_while_waking import WakingCalls
from panglot.engine.sleep.last_life import LastLife
from panglot.engine.sleep.memory_use import MemoryUse
from panglot.engine.sleep.own_workers import OwnWorkers
from panglot.engine.sleep.sleeper import AWAKE, NEW
from panglot.fronts import messages
from panglot.fronts.board import QUEUED
from panglot.fronts.sleep.board import (
    BUSY,
    CALLS,
    DONE,
    GRANTED,
    HEARD,
    LOAD,
    LOADED,
    SEEN,
    SEEN_GPU,
    SETTLED,
    STARTED,
    STATE,
    STATES,
    USED,
    USED_GPU,
    WORKERS,
    bytes_of,
    cell_of,
)  # fmt: skip

if TYPE_CHECKING:
    from panglot.engine.pools.pool import Pool
    from panglot.fronts.member import Member


class FrontSleep:
    """An `EngineSleep` that decides nothing itself.

    NEW -> AWAKE: its first load has ended. AWAKE -> ASLEEP, ASLEEP -> WAKING: by an order. WAKING -> AWAKE: its own
    workers are ready. Until then a front that was faster may run its calls.
    """

    def __init__(self, engine: LocalEngine, slot: int, member: Member, memory_use: MemoryUse | None) -> None:
        self._engine = engine
        self._slot = slot
        self._member = member
        self._counts_memory = memory_use is not None
        self._workers = OwnWorkers(engine, memory_use, lambda: self.on_sleep())
        self.on_sleep: Callable[[], None] = lambda: None
        self._calls = WakingCalls(engine, self)
        self._row = member.board.sleep.of_front(slot, member.index)
        self._parents = member.board.sleep.of_parent(slot)
        self._state = NEW
        self._since = engine.clock()
        self._has_workers = False
        """Whether the last order was to have workers."""
        self._has_asked = False
        """Whether the parent knows that a call waits for the waking."""
        self._has_mentioned = False
        """Whether the parent knows that a call was refused for want of memory, since the last order."""
        member.sleeps[slot] = self
        settings, share = engine.settings, engine.context.share
        limits = settings.sleep_after, settings.timeout, settings.memory, settings.gpu_memory
        member.tell(messages.MaySleep(slot, engine.package.name, 1 if share.at_home else share.fronts, *limits))

    # Orders of the parent

    def obey(self, order: messages.Sleep | messages.Wake) -> None:
        """Carry out an order of the parent."""
        # Until the parent sees its last order here, it takes the other cells for older than the order.
        self._row[HEARD] = order.order
        self._has_asked = self._has_mentioned = False
        self._since = self._engine.clock()
        if isinstance(order, messages.Sleep):
            self._state, self._has_workers = ASLEEP, False
            self._workers.retire_workers(order.reason)
        elif not self._has_workers:
            self._state, self._has_workers = NEW if self._state == NEW else WAKING, True
            self._workers.start_workers()
            self._engine.metrics.wakes += order.is_counted
        self.publish()
        if self._state == ASLEEP and self._engine.live:
            # Calls came at the same moment as the order: the model wakes again.
            self._ask()

    def _ask(self) -> None:
        if not self._has_asked:
            self._has_asked = True
            self._member.tell(messages.WakeWanted(self._slot))

    def publish(self) -> None:
        """Tell the parent how busy this part of the model is."""
        row, workers = self._row, self._workers
        row[CALLS], row[BUSY], row[DONE] = workers.has_calls, workers.is_busy, workers.done
        row[SETTLED] = workers.is_settled and self._state == AWAKE
        row[LOADED] = workers.is_loaded
        row[WORKERS] = sum(len(pool.workers) for pool in self._engine.pools)

    # As EngineSleep

    @property
    def state(self) -> str:
        return WAKING if self._state == ASLEEP and self._has_asked else self._state

    @property
    def need(self) -> tuple[int | None, int | None]:
        return _need(self._engine, self._parents)

    @property
    def _seen(self) -> tuple[int | None, int | None]:
        return bytes_of(self._parents[SEEN]), bytes_of(self._parents[SEEN_GPU])

    def start_first(self) -> None:
        if self._state == NEW:
            self._ask()

    def resume(self, life: LastLife) -> None:
        self._state = ASLEEP
        self._member.tell(messages.BeginsAsleep(self._slot, life.seconds, life.memory, life.gpu_memory))

    def last_life(self) -> LastLife:
        workers = tuple(pool.supervisor.least for pool in self._engine.pools)
        return LastLife(self._engine.description, workers, self.load_seconds, *self._seen)

    def arrive(self, call: Call) -> Fault | None:
        """Have a call wake the model if it sleeps. Returns the fault of a call that is refused."""
        # At once, and not with the next beat: the parent gives an order to sleep only while no front has a call.
        self._row[CALLS] = 1
        if self._state not in (ASLEEP, WAKING):
            return None
        fault = self._calls.refused(call, self._waiting())
        if fault is None and self._state == ASLEEP:
            self._ask()
        return fault

    def _waiting(self) -> int:
        """Calls that wait for the model, in all fronts."""
        board, own = self._member.board, self._member.index
        others = (board.model_row(front, self._slot)[QUEUED] for front in range(board.fronts) if front != own)
        return len(self._engine.entrance.queue) + sum(others)

    def fault(self) -> Fault:
        return self._calls.fault()

    def loaded(self) -> None:
        if self._state in (NEW, WAKING) and self._workers.is_loaded:
            self._state, self._since = AWAKE, self._engine.clock()
            self._tell_memory()
        self.publish()

    def worker_ended(self, pool: Pool) -> None:
        if self._state == ASLEEP and not pool.workers:
            pool.supervisor.launcher.rest()
        self.publish()

    def tick(self, now: float) -> None:
        """Refuse calls that waited too long, and tell the parent what this front uses."""
        if self.state == WAKING:
            self._calls.refuse_late(now)
        if self._state == ASLEEP and self._engine.live:
            # A call has come back from a dying worker, or from another front.
            self._ask()
        self._tell_memory()
        self.publish()

    def _tell_memory(self) -> None:
        if self._counts_memory and self._state == AWAKE:
            machine, gpu = self._workers.used(self._since)
            self._row[USED], self._row[USED_GPU] = cell_of(machine), cell_of(gpu)

    def close(self) -> None:
        if self._member.sleeps.get(self._slot) is self:
            del self._member.sleeps[self._slot]
        self._member.tell(messages.SleepsNoMore(self._slot))

    # As Waking, for the calls that wait: figures of the parent

    @property
    def granted(self) -> bool:
        return bool(self._parents[GRANTED])

    @property
    def started(self) -> float:
        return self._parents[STARTED] / 1000

    @property
    def load_seconds(self) -> float:
        return self._parents[LOAD] / 1000

    @property
    def waits_for_memory(self) -> bool:
        return self._counts_memory and not self.granted

    def mention_wait(self) -> None:
        if not self._has_mentioned:
            self._has_mentioned = True
            self._member.tell(messages.WaitsForMemory(self._slot))


class PassedOnSleep:
    """The `EngineSleep` of a front without workers of the model: calls wake it in the front that has them."""

    def __init__(self, engine: LocalEngine, parents: memoryview) -> None:
        self._engine = engine
        self._parents = parents
        self.on_sleep: Callable[[], None] = lambda: None

    @property
    def state(self) -> str:
        return STATES[self._parents[STATE]]

    @property
    def need(self) -> tuple[int | None, int | None]:
        return _need(self._engine, self._parents)

    def start_first(self) -> None:
        """Leave it to the other front, as all that follows."""

    def resume(self, life: LastLife) -> None: ...

    def last_life(self) -> LastLife:
        return LastLife(self._engine.description, (), self._parents[LOAD] / 1000)

    def arrive(self, call: Call) -> Fault | None:
        return None

    def fault(self) -> Fault:
        left = max(1, math.ceil(self._parents[LOAD] / 1000))
        return Fault(503, "waking", "the model was asleep and is being loaded; try again later", left)

    def loaded(self) -> None: ...

    def worker_ended(self, pool: Pool) -> None: ...

    def tick(self, now: float) -> None: ...

    def close(self) -> None: ...


def _need(engine: LocalEngine, parents: memoryview) -> tuple[int | None, int | None]:
    settings = engine.settings
    return settings.memory or bytes_of(parents[SEEN]), settings.gpu_memory or bytes_of(parents[SEEN_GPU])
