"""The memory that all models of a server may use together: which may load now, and which have to sleep for that."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from panglot.engine.sleep.memory import Memory

if TYPE_CHECKING:
    from panglot.engine.sleep.sleeper import Sleeper

BUDGET = "budget"
NOTHING = Memory()

log = logging.getLogger("panglot.engine")


class MemoryBudget:
    """Owns the turn of models that wait for memory. A limit of 0 counts nothing of its kind."""

    def __init__(self, limits: Memory, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.clock = clock
        self.members: list[Sleeper] = []
        self._waiting: deque[Sleeper] = deque()
        self._oversized: set[str] = set()
        """Models that need more than there is, and have been mentioned in the log."""

    def ask(self, sleeper: Sleeper) -> None:
        """Have a model started once there is memory for it. Models that asked before it are looked at first."""
        self._waiting.append(sleeper)
        self.look()

    def is_asked_by(self, sleeper: Sleeper) -> bool:
        """Whether a model waits for memory."""
        return sleeper in self._waiting

    def withdraw(self, sleeper: Sleeper) -> None:
        """Forget that a model waits for memory."""
        if sleeper in self._waiting:
            self._waiting.remove(sleeper)

    def remove(self, sleeper: Sleeper) -> None:
        """Forget a model that is no longer served."""
        self.withdraw(sleeper)
        if sleeper in self.members:
            self.members.remove(sleeper)
        self.look()

    def users_besides(self, sleeper: Sleeper) -> list[str]:
        """The names of the other models that have memory."""
        return [member.name for member in self.members if member is not sleeper and member.uses_memory]

    # Deciding

    def look(self) -> None:
        """Start the models that wait, as far as there is memory. For the others, put idle models to sleep."""
        for sleeper in list(self._waiting):
            if sleeper.has_workers:
                # It was called while it fell asleep: the memory of its old workers is not free yet.
                continue
            need = self._need(sleeper)
            others = [member for member in self.members if member is not sleeper and member.uses_memory]
            staying = [member for member in others if member.granted]
            if self._fits(need, others):
                self._waiting.remove(sleeper)
                self._mention_oversized(sleeper, need)
                sleeper.start()
            elif self._fits(need, staying):
                # Models that are on their way to sleep make enough space. Nobody else may take it before.
                return
            elif victims := self._victims(need, staying):
                self._put_to_sleep(victims, f"{sleeper.name} needs its memory")
                # The memory is free once their workers have ended; `look` is called again then.
                return
        self._shrink()

    def _shrink(self) -> None:
        """Put idle models to sleep where models have grown beyond the budget."""
        staying = [member for member in self.members if member.granted]
        if len(staying) > 1 and not self._fits(NOTHING, staying):
            self._put_to_sleep(self._victims(NOTHING, staying), "the models have outgrown the memory budget")

    def _need(self, sleeper: Sleeper) -> Memory:
        """The need of a model. A need that is not known counts as the whole budget, until the model is measured."""
        return Memory(*(_counted(need, limit) for need, limit in zip(sleeper.need, self.limits, strict=True)))

    def _fits(self, need: Memory, others: Iterable[Sleeper]) -> bool:
        """Whether a model with this need may be loaded beside others. Alone it always may."""
        needs = [self._need(other) for other in others]
        if not needs:
            return True
        total = need
        for other in needs:
            total = total.plus(other)
        return total.machine <= self.limits.machine and total.gpu <= self.limits.gpu

    def _victims(self, need: Memory, staying: list[Sleeper]) -> list[Sleeper]:
        """The idle models that have to sleep for a model with this need; none where all of them are not enough.

        The least recently used go first, and no more of them than it takes.
        """
        now = self.clock()
        # First: a model may have been used since its last tick.
        for member in staying:
            member.note_use(now)
        idle = sorted((member for member in staying if member.may_yield(now)), key=lambda member: member.last_used)
        chosen: list[Sleeper] = []
        for member in idle:
            chosen.append(member)
            if self._fits(need, _without(staying, chosen)):
                break
        else:
            return []
        # A small model that was chosen first may stay after all, where a larger one makes enough space alone.
        for member in reversed(chosen[:-1]):
            fewer = _without(chosen, [member])
            if self._fits(need, _without(staying, fewer)):
                chosen = fewer
        return chosen

    @staticmethod
    def _put_to_sleep(victims: list[Sleeper], why: str) -> None:
        for victim in victims:
            victim.sleep(BUDGET, why)

    def _mention_oversized(self, sleeper: Sleeper, need: Memory) -> None:
        beyond = need.machine > self.limits.machine or need.gpu > self.limits.gpu
        if beyond and sleeper.name not in self._oversized:
            self._oversized.add(sleeper.name)
            message = "needs %s, which is more than the memory budget: it is loaded alone, and goes beyond it"
            log.warning(message, need, extra={"package": sleeper.name})


def _without(members: Iterable[Sleeper], left_out: Sequence[Sleeper]) -> list[Sleeper]:
    return [member for member in members if member not in left_out]


def _counted(need: int | None, limit: int) -> int:
    """What a need counts for: nothing where there is no limit, all of the limit where the need is not known."""
    if not limit:
        return 0
    return limit if need is None else need
