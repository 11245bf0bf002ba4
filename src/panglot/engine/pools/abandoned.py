"""Calls that a worker runs although nobody waits for them any more: they finish, are interrupted, or their worker ends.

A client disconnects, a deadline passes, a job is cancelled. The setting `on_leave` says what happens then: the script's
call goes on; or a signal interrupts the script, which has `kill_grace` seconds to clean up; or its worker is killed. A
batch ends like this only once nobody waits for any of its calls. A worker that runs several calls at once cancels each
of them itself.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from panglot.engine.call import RUNNING
from panglot.engine.workers.worker import STOPPED, Worker
from panglot.metrics.counters import Metrics
from panglot.settings import Settings
from panglot_worker.line import wire

FINISH, INTERRUPT, KILL = "finish", "interrupt", "kill"
FINISHED, INTERRUPTED, KILLED = "finished", "interrupted", "killed"
"""How an abandoned run ended."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds from the first signal to the second, and at most. Each pause is twice as long as the pause before."""

log = logging.getLogger("panglot.engine")


@dataclass
class AbandonedRun:
    """A run that nobody waits for: the ids of its calls, when it began, and since when nobody waits."""

    ids: frozenset[int]
    began: float
    since: float
    pause: float = FIRST_PAUSE
    timer: asyncio.TimerHandle | None = None


class AbandonedRuns:
    """The abandoned runs of one pool's workers. It owns their timers, and counts how they ended."""

    def __init__(self, settings: Settings, metrics: Metrics, clock: Callable[[], float]) -> None:
        # With --inline the script is in this process, so a signal would hit the front.
        self.on_leave = FINISH if settings.inline else settings.on_leave
        self.grace = settings.kill_grace
        self.metrics = metrics
        self.clock = clock
        self.runs: dict[Worker, AbandonedRun] = {}

    def look(self, worker: Worker) -> None:
        """Begin to end the run of a worker, if nobody waits for it any more. Its calls are cancelled already."""
        begun = list(itertools.islice(worker.in_flight.values(), worker.begun))
        if worker in self.runs or worker.slots > 1 or not begun or any(call.state == RUNNING for call in begun):
            return
        run = AbandonedRun(frozenset(call.id for call in begun), worker.busy_since, self.clock())
        self.runs[worker] = run
        if self.on_leave == KILL:
            # By this reason it gets no further call, and its death is neither reported nor blamed on a request.
            worker.reason, worker.why = STOPPED, "was killed: nobody waits for the call it ran (--on-leave kill)"
            worker.kill()
        elif self.on_leave == INTERRUPT and worker.interrupts:
            self._interrupt(worker, run)

    def _interrupt(self, worker: Worker, run: AbandonedRun) -> None:
        """Signal the worker again and again: it ignores one that comes before the cancellation, or amid our own code.

        The script itself is interrupted once.
        """
        left = run.since + self.grace - self.clock()
        if left <= 0:
            worker.kill_hung(f"was killed: a call went on for {self.grace:g} s after it was interrupted", STOPPED)
            return
        worker.interrupt()
        run.timer = asyncio.get_running_loop().call_later(min(run.pause, left), self._interrupt, worker, run)
        run.pause = min(LONGEST_PAUSE, 2 * run.pause)

    def replied(self, worker: Worker, replies: Iterable[wire.Reply]) -> None:
        """Note the replies of a worker: the last one to an abandoned run ends that run."""
        run = self.runs.get(worker)
        if run is not None and not any(item_id in worker.in_flight for item_id in run.ids):
            unrun = any(reply.id in run.ids and reply.flags & wire.UNRUN for reply in replies)
            self._end(worker, INTERRUPTED if unrun else FINISHED)

    def died(self, worker: Worker) -> None:
        """Note the end of a worker, which may have been killed for its abandoned run."""
        if worker in self.runs:
            self._end(worker, KILLED)
        if worker.reason == STOPPED:
            log.info("%s %s", worker, worker.why, extra={"worker": worker.index})

    def _end(self, worker: Worker, how: str) -> None:
        run, now = self.runs.pop(worker), self.clock()
        if run.timer is not None:
            run.timer.cancel()
        self.metrics.abandoned[how] += len(run.ids)
        self.metrics.abandoned_seconds[how] += now - run.since
        runs = self.metrics.stages[2]
        if how != FINISHED and runs.count:
            # An estimate by the mean of all calls: nobody knows how long this call would have taken.
            self.metrics.saved_seconds += max(0.0, runs.total / runs.count / 1e6 - (now - run.began))
