"""Which models sleep, in a server with several fronts: the parent decides for the workers of all fronts.

Each front writes to the board how busy its part of a model is. The parent sends orders to sleep and to wake, and each
front carries out each order. A call that comes to a front together with an order to sleep waits, and wakes the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from panglot.engine.interface import ASLEEP
from panglot.engine.sleep.budget import MemoryBudget
from panglot.engine.sleep.memory import Memory
from panglot.engine.sleep.sleeper import NEW, Sleeper
from panglot.fronts import messages
from panglot.fronts.front_process import FrontProcess
from panglot.fronts.messages import BeginsAsleep, MaySleep, Message
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
    SleepBoard,
    bytes_of,
    cell_of,
)  # fmt: skip
from panglot.fronts.timers import Timers
from panglot.settings import Settings

EVERY = 0.1
"""Seconds between two looks at the models that may sleep."""
Tell = Callable[[FrontProcess, Message], None]


class ModelOfFronts:
    """A `Sleepable` whose workers belong to several fronts."""

    def __init__(
        self,
        about: MaySleep,
        fronts: Sequence[FrontProcess],
        board: SleepBoard,
        tell: Tell,
        is_draining: Callable[[], bool],
    ) -> None:
        self.name, self.sleep_after, self.timeout = about.name, about.sleep_after, about.timeout
        self.memory, self.gpu_memory = about.memory, about.gpu_memory
        self._parts = about.fronts
        self._slot = about.slot
        self._fronts = fronts
        self._board = board
        self._tell = tell
        self._is_draining = is_draining
        self._order = 0
        self._is_counted = False
        """Whether a front is to count the next order to wake."""
        self.having: dict[int, int] = {}
        """The fronts that have the model, each with the last order that it was given."""

    def _cells(self, cell: int) -> list[int]:
        return [self._board.of_front(self._slot, front)[cell] for front in self.having]

    def _obeyed(self) -> bool:
        """Whether all fronts have carried out their last order. Until then the board has older figures."""
        return all(self._board.of_front(self._slot, front)[HEARD] == order for front, order in self.having.items())

    @property
    def is_draining(self) -> bool:
        return self._is_draining()

    @property
    def has_calls(self) -> bool:
        return any(self._cells(CALLS))

    @property
    def is_busy(self) -> bool:
        return any(self._cells(BUSY)) or self.has_calls

    @property
    def done(self) -> int:
        return sum(self._cells(DONE))

    @property
    def is_settled(self) -> bool:
        return self._obeyed() and all(self._cells(SETTLED))

    @property
    def is_loaded(self) -> bool:
        """Whether one front has loaded it: the other fronts lend their calls to it."""
        return self._obeyed() and any(self._cells(LOADED))

    @property
    def has_workers(self) -> bool:
        return not self._obeyed() or any(self._cells(WORKERS))

    def retire_workers(self, reason: str) -> None:
        self._order += 1
        for position, front in enumerate(self.having):
            # With a reason for one front, which counts the sleep: the counters of all fronts are added.
            self._give(front, messages.Sleep(self._slot, self._order, "" if position else reason))

    def start_workers(self) -> None:
        self._order += 1
        for front in self.having:
            self._give(front, messages.Wake(self._slot, self._order, self._is_counted))
            self._is_counted = False

    def count_wake(self) -> None:
        """Have one front count the next order to wake."""
        self._is_counted = True

    def wake_one(self, front: int) -> None:
        """Start the workers of a front that has come later than other fronts."""
        self._give(front, messages.Wake(self._slot, self._order, False))

    def _give(self, front: int, order: messages.Sleep | messages.Wake) -> None:
        self.having[front] = order.order
        self._tell(self._fronts[front], order)

    def used(self, since: float) -> tuple[int, int | None]:
        return self._of_all(self._cells(USED)) or 0, self._of_all(self._cells(USED_GPU))

    def _of_all(self, cells: Sequence[int]) -> int | None:
        """Bytes of all fronts. A front that has not loaded the model yet is taken to need as much as another."""
        sizes = [size for size in map(bytes_of, cells) if size is not None]
        return sum(sizes) * max(self._parts, len(sizes)) // len(sizes) if sizes else None


class Sleeps:
    """Owns the sleep of all models, in the parent."""

    def __init__(
        self,
        fronts: Sequence[FrontProcess],
        board: SleepBoard,
        settings: Settings,
        tell: Tell,
        timers: Timers,
        is_draining: Callable[[], bool],
    ) -> None:
        self._fronts = fronts
        self._board = board
        self._tell = tell
        self._timers = timers
        self._is_draining = is_draining
        limits = Memory(settings.memory_budget, settings.gpu_memory_budget)
        self._budget = MemoryBudget(limits, time.monotonic) if any(limits) else None
        self._models: dict[int, tuple[ModelOfFronts, Sleeper]] = {}
        """By slot."""
        self._is_looking = False

    def heard(self, front: FrontProcess, message: Message) -> None:
        """Take a message of a front about models that sleep or wake."""
        match message:
            case messages.MaySleep():
                self._add(front.index, message)
            case messages.BeginsAsleep():
                self._begins_asleep(front.index, message)
            case messages.WakeWanted(slot):
                self._wake_wanted(front.index, slot)
            case messages.WaitsForMemory(slot) if slot in self._models:
                self._models[slot][1].mention_wait()
            case messages.SleepsNoMore(slot):
                self._remove(front.index, slot)

    def front_ended(self, index: int) -> None:
        for slot in list(self._models):
            self._remove(index, slot)

    def _add(self, front: int, about: MaySleep) -> None:
        if about.slot not in self._models:
            model = ModelOfFronts(about, self._fronts, self._board, self._tell, self._is_draining)
            self._models[about.slot] = model, Sleeper(model, self._budget, time.monotonic)
            self._publish(about.slot)
        # It was given no order yet, and its row on the board says 0 too.
        self._models[about.slot][0].having[front] = 0
        if not self._is_looking:
            self._is_looking = True
            self._timers.after(EVERY, self._look)

    def _remove(self, front: int, slot: int) -> None:
        if slot not in self._models:
            return
        model, sleeper = self._models[slot]
        model.having.pop(front, None)
        if not model.having:
            del self._models[slot]
            if self._budget is not None:
                self._budget.remove(sleeper)

    def _begins_asleep(self, front: int, about: BeginsAsleep) -> None:
        if about.slot not in self._models:
            return
        model, sleeper = self._models[about.slot]
        if sleeper.granted:
            # The front has died and comes back, while the model is awake in the other fronts.
            model.wake_one(front)
        elif sleeper.state == NEW:
            sleeper.resume(about.seconds, about.memory, about.gpu_memory)
            self._publish(about.slot)

    def _wake_wanted(self, front: int, slot: int) -> None:
        if slot not in self._models:
            return
        model, sleeper = self._models[slot]
        if sleeper.granted:
            model.wake_one(front)
        elif sleeper.state == ASLEEP:
            sleeper.wake()
        elif sleeper.state == NEW and (self._budget is None or not self._budget.is_asked_by(sleeper)):
            sleeper.start_first()
        self._publish(slot)

    def _look(self) -> None:
        now = time.monotonic()
        for slot, (_, sleeper) in list(self._models.items()):
            sleeper.loaded()
            sleeper.tick(now)
            self._publish(slot)
        self._is_looking = bool(self._models)
        if self._is_looking:
            self._timers.after(EVERY, self._look)

    def _publish(self, slot: int) -> None:
        """Write the figures to the board that fronts need for calls that wait."""
        if slot not in self._models:
            return
        sleeper, row = self._models[slot][1], self._board.of_parent(slot)
        row[GRANTED], row[STARTED] = sleeper.granted, int(sleeper.started * 1000)
        row[STATE] = STATES.index(sleeper.state)
        row[LOAD] = int(sleeper.load_seconds * 1000)
        row[SEEN], row[SEEN_GPU] = map(cell_of, sleeper.seen)
