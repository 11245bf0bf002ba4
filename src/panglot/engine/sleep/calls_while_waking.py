"""Calls for a model that is asleep: how many may wait for it, for how long, and the fault of all further ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from panglot.engine.call import Call, Fault

if TYPE_CHECKING:
    from panglot.engine.engine import LocalEngine

LONGEST_RETRY = 300
"""The largest Retry-After, in seconds."""


class Waking(Protocol):
    """How far a model is with its waking. A `Sleeper`, or what a front knows of its parent's."""

    @property
    def granted(self) -> bool:
        """Whether the memory that it needs is its own."""

    @property
    def started(self) -> float:
        """When its workers were started."""

    @property
    def load_seconds(self) -> float:
        """How long a load takes."""

    @property
    def waits_for_memory(self) -> bool:
        """Whether others use the memory that it needs."""

    def mention_wait(self) -> None:
        """Have the log say, once for each sleep, who uses that memory."""


class WakingCalls:
    """Decides for the calls of one engine while its model wakes."""

    def __init__(self, engine: LocalEngine, waking: Waking) -> None:
        self._engine = engine
        self._waking = waking

    def refused(self, call: Call, waiting: int) -> Fault | None:
        """The fault of a call that may not wait, because so many others do."""
        # A lent call has been admitted by its own front, unless this front alone has workers.
        is_admitted = call.background or (call.lent and not self._engine.context.share.at_home)
        if is_admitted or waiting < self._engine.settings.wake_queue:
            return None
        self._engine.metrics.dropped["waking"] += 1
        return self.fault()

    def refuse_late(self, now: float) -> None:
        """Answer the calls that have waited for too long."""
        longest = self._engine.settings.wake_timeout
        if longest:
            pool = self._engine.pools[0]
            late = [call for call in pool.dispatcher.queue.waiting() if now - call.arrived >= longest]
            pool.refuse(late, self.fault())

    def fault(self) -> Fault:
        """The answer to a call that does not wait for the waking, or not any longer."""
        waking = self._waking
        passed = self._engine.clock() - waking.started if waking.granted else 0.0
        left = max(1, min(LONGEST_RETRY, math.ceil(waking.load_seconds - passed)))
        if waking.waits_for_memory:
            waking.mention_wait()
            return Fault(
                503, "waking", "the model is asleep, and others use the memory it needs; try again later", left
            )
        return Fault(503, "waking", "the model was asleep and is being loaded; try again later", left)
