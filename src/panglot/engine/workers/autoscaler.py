"""Looks at a pool a few times a second, and changes the number of its workers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from panglot.engine.context import EngineContext
from panglot.engine.workers.restarts import Pace
from panglot.engine.workers.scaling import PoolLoad, Resize, Scaling
from panglot.engine.workers.worker import READY
from panglot.settings.counts import WorkerCount

if TYPE_CHECKING:
    from panglot.engine.workers.supervisor import Supervisor

log = logging.getLogger("panglot.engine")
OFTEN = 0.25
"""Seconds between two looks, at most."""
CHANGES = 20
"""Changes that are remembered."""


@dataclass(frozen=True)
class SizeChange:
    """A pool that has got more workers, or fewer."""

    when: float
    before: int
    after: int
    why: str


class Autoscaler:
    """Keeps a pool within its range of workers. `run` is a task for as long as the pool serves."""

    def __init__(self, supervisor: Supervisor, count: WorkerCount, title: str, context: EngineContext) -> None:
        settings = context.settings
        self.supervisor = supervisor
        self.title = title
        self.metrics = context.metrics
        self.clock = context.clock
        self.scaling = Scaling(count, settings.scale_wait, settings.scale_idle)
        self.changes: deque[SizeChange] = deque(maxlen=CHANGES)
        self._failures = Pace(settings.restart_delay, settings.restart_delay_max)
        # Often enough to see a wait before it is too long, and several moments of the idle time.
        self._pause = max(0.05, min(OFTEN, settings.scale_wait / 2, settings.scale_idle / 8))

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            await asyncio.sleep(self._pause)
            decision = self.scaling.decide(self.load(), self.clock())
            if decision is not None:
                self._act(decision)

    def load(self) -> PoolLoad:
        """What the pool looks like now."""
        present = self.supervisor.present()
        waiting, waited = self.supervisor.waiting(self.clock())
        dropped = self.metrics.dropped
        return PoolLoad(
            wanted=self.supervisor.wanted,
            settled=len(present) == self.supervisor.wanted and all(worker.state == READY for worker in present),
            busy=sum(worker.taken for worker in present),
            waiting=waiting,
            waited=waited,
            turned_away=dropped["queue_full"] + dropped["deadline"],
            at_once=max((worker.at_once for worker in present), default=1),
        )

    def _act(self, decision: Resize) -> None:
        before = self.supervisor.wanted
        self.metrics.scaled["up" if decision.wanted > before else "down"] += abs(decision.wanted - before)
        self._report(before, decision.wanted, decision.why)
        self.supervisor.resize(decision.wanted)

    def failed(self) -> None:
        """Note that a worker that was to be one more did not start; more are wanted only after a pause."""
        now = self.clock()
        self._failures.done(now)
        pause = self._failures.wait(now)
        self.scaling.pause(now + pause)
        self._report(self.supervisor.wanted + 1, self.supervisor.wanted, "one more could not be started")

    def _report(self, before: int, after: int, why: str) -> None:
        """Write a change down, in the log and for the page."""
        self.changes.append(SizeChange(time.time(), before, after, why))
        workers = f"{self.title}{'s' if after != 1 else ''}"
        message = "%d %s instead of %d, of %s: %s"
        log.info(message, after, workers, before, self.scaling.count, why, extra=self.supervisor.log_fields())
