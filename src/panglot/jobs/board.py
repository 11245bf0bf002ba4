"""Jobs on the event loop: submitting, following and cancelling them, and feeding them to the engines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from panglot.engine.call import RUNNING as CALL_RUNS
from panglot.engine.call import Fault
from panglot.jobs import gauges
from panglot.jobs.adopting import adopt
from panglot.jobs.held import WAS_CANCELLED, HeldCall, HeldJobs
from panglot.jobs.interface import JobRunner, JobState, ModelCount
from panglot.jobs.job import (
    CANCELLED,
    DISK,
    EXPIRED,
    QUEUED,
    UNAVAILABLE,
    Claimed,
    Job,
    JobLimits,
    JobOutcome,
    JobTrouble,
    NewJob,
    StoredAnswer,
)
from panglot.jobs.running import NOT_RUN, TRIED_AGAIN, JobCall
from panglot.jobs.storage.store import JobStore, Report
from panglot.jobs.watching import PartCursors, Watchers, until_ended

SWEEP = 1.0
"""Seconds between looks at what is due."""
FIRST_DELAY = 5.0
"""Seconds before a second attempt; four times as many before each further one."""
LONGEST_RETRY = 30.0
"""Seconds after which the store tries an answer again at the latest, where it could not be stored."""
MOST_UNSTORED = 64 << 20
"""Bytes of answers that wait for the disk; beyond them no job starts."""

AWAY = "the job could not be stored; try again later"

log = logging.getLogger("panglot.jobs")


class JobBoard:
    """All jobs of a server. It is used on the event loop alone; the store's thread does the work. A `Jobs`."""

    def __init__(self, path: Path | None, limits: JobLimits, durable: bool = True) -> None:
        """`durable` is False for a folder in memory, which outlives the process and not the machine."""
        self.store = JobStore(path, limits, self._deliver, "FULL" if durable else "OFF")
        self.durable = durable and path is not None
        self.runners: dict[str, JobRunner] = {}
        self.running: dict[str, JobCall] = {}
        """The calls of jobs that run, by the job's id."""
        self.on_outbox: Callable[[], None] = lambda: None
        """Called when there may be an event for a receiver of webhooks."""
        self.on_open: Callable[[], None] = lambda: None
        """Called when there are jobs, or may be."""
        self.on_change: Callable[[str], None] = lambda name: None
        """Called with the id of a job that has changed."""
        self.ended: Counter[tuple[str, int]] = Counter()
        """Jobs that have ended, by model and state."""
        self.webhooks: Counter[str] = Counter()
        """Attempts to deliver webhooks, by outcome: delivered, failed, dropped."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = self._stopping = False
        self._claiming: set[str] = set()
        self._running_of: Counter[str] = Counter()
        self._watchers = Watchers()
        self._cursors = PartCursors()
        self.held = HeldJobs(self.store.now, self.durable, self.wake)
        self._unstored = 0
        self._sweeper: asyncio.Task[None] | None = None

    # Life

    @property
    def has_stored(self) -> bool:
        """Whether there is a folder to open before the first job comes: jobs of an earlier process may be in it."""
        folder = self.store.folder
        return self.durable or (folder is not None and bool(folder.current()))

    def open(self) -> None:
        """Open the store. One in memory is opened by the first job. Raises StartError."""
        if not self._is_open:
            for sentence in self.store.open():
                log.error("jobs: %s", sentence)
            self._is_open = True
            self.on_open()

    def start(self) -> None:
        """Begin to run stored jobs. The loop must run."""
        self._loop = asyncio.get_running_loop()
        if self._is_open:
            self._begin_sweeping()
            self.feed_all()
            self.on_outbox()

    def _begin_sweeping(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.ensure_future(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            try:
                await self._do_what_is_due()
            except Exception:
                # All lifetimes and delays depend on this task: it goes on, whatever one sweep meets.
                log.exception("the server itself failed on a job")

    async def _do_what_is_due(self) -> None:
        if self.store.jobs:
            swept = await self._ask(self.store.write, "sweep", self.store.now())
            if not isinstance(swept, JobTrouble):
                for job in swept.expired:
                    self._has_ended(job)
                for model in swept.queued:
                    self.feed(model)
        for call in list(self.running.values()):
            # Each is looked at only now: it may have ended while the store was asked about the one before.
            if self._is_overdue(call):
                # If the disk fails, the next sweep tries again.
                with contextlib.suppress(JobTrouble):
                    await self._ended_by(call.job.id, EXPIRED)
        self.feed_all()
        self.on_outbox()

    def _is_overdue(self, call: JobCall) -> bool:
        """Whether a claimed job ends as its lifetime is over: it has not begun, or its route ends running jobs then.

        A run that is over has an end of its own, also while the disk refuses to store it.
        """
        job = call.job
        if job.expires > self.store.now() or call.is_over or self.running.get(job.id) is not call:
            return False
        runner = self.runners.get(job.model)
        return call.state != CALL_RUNS or (runner is not None and runner.ends_late(job))

    @property
    def is_used(self) -> bool:
        """Whether there are jobs, or a folder for them."""
        return self._is_open

    def stop_feeding(self) -> None:
        """Start no further job: the server is stopping. Clients that wait for a job that does not run get an answer."""
        self._stopping = True
        self._watchers.wake_all()

    async def close(self) -> None:
        """Give back the jobs that still run, as if they had never run, and close the store."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if not self._is_open:
            return
        for call in list(self.running.values()):
            self.running.pop(call.job.id, None)  # First: `over` then ignores the end of this run.
            self.store.write("give_back", call.job.seq, call.job.attempts, then=lambda result: None)
        await asyncio.get_running_loop().run_in_executor(None, self.store.close)
        self._is_open = False

    def _deliver(self, reports: list[Report]) -> None:
        """Called on the store's thread: pass the results to the loop."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                self._loop.call_soon_threadsafe(_hand_out, reports)

    async def _ask(self, put: Callable[..., None], *arguments: Any) -> Any:
        """The result of a command or query, which may be a JobTrouble; None while the store is not open."""
        if not self._is_open:
            return None
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        put(*arguments, then=lambda result: None if future.done() else future.set_result(result))
        return await future

    async def _checked(self, put: Callable[..., None], *arguments: Any) -> Any:
        result = await self._ask(put, *arguments)
        if isinstance(result, JobTrouble):
            raise result
        return result

    # Clients

    def submit(self, job: NewJob, then: Callable[[Any], None], within: float = math.inf) -> None:
        """Store a job; `then` gets it with whether it is new, or a JobTrouble, once it is stored."""
        if self._stopping:
            then(JobTrouble(UNAVAILABLE, "the server is stopping"))
            return
        self.open()
        self._begin_sweeping()

        def stored(result: Any) -> None:
            then(result)
            if not isinstance(result, JobTrouble) and result[1]:
                self.feed(job.model)

        self.store.submit(job, stored)

    def adopt(self, call: HeldCall, then: Callable[[Job | JobTrouble], None]) -> None:
        """Store a held job, which runs on; `then` gets it as it is stored, or a JobTrouble."""
        adopt(self, call, then)

    def adopt_as(
        self,
        new: NewJob,
        accepted: float,
        started: float,
        begin: Callable[[Job], JobCall],
        then: Callable[[Job | JobTrouble], None],
    ) -> None:
        """Store a job that runs already; `begin` makes the call of its run. `then` gets the job, or a JobTrouble."""
        self.open()
        self._begin_sweeping()

        def stored(result: Job | JobTrouble | None) -> None:
            if isinstance(result, Job):
                self.running[result.id] = begin(result)
                self._running_of[result.model] += 1
            then(result or JobTrouble(UNAVAILABLE, AWAY))

        self.store.adopt(new, accepted, started, stored)

    async def get(self, name: str) -> JobState | None:
        """A job as it is now. Raises JobTrouble."""
        held = self.held.get(name)
        if held is not None:
            return held
        return self._state(await self._checked(self.store.read, "get", name))

    async def by_key(self, owner: str, model: str, key: str) -> JobState | None:
        """The job of an Idempotency-Key. Raises JobTrouble."""
        return self._state(await self._checked(self.store.read, "by_key", owner, model, key))

    async def by_seq(self, seq: int) -> JobState | None:
        return self._state(await self._checked(self.store.read, "by_seq", seq))

    def _state(self, job: Job | None) -> JobState | None:
        if job is None:
            return None
        call = self.running.get(job.id)
        if call is None or job.is_ended or call.job.attempts != job.attempts:
            return JobState(job, self.durable, parts=len(job.parts or b"") // 8)
        return JobState(job, self.durable, call.progress, call.printed_text, len(call.parts))

    async def answer(self, name: str) -> StoredAnswer | None:
        """The stored answer of a job; None where it has none. Raises JobTrouble."""
        answer: StoredAnswer | None = await self._checked(self.store.read, "answer", name)
        return answer

    async def request(self, name: str) -> tuple[bytes, bytes] | None:
        """The head and the body of a job's request. Raises JobTrouble."""
        request: tuple[bytes, bytes] | None = await self._checked(self.store.read, "request", name)
        return request

    async def parts(self, name: str, after: int) -> list[bytes]:
        """The parts of a streamed answer behind the first `after`, as far as they have come. Raises JobTrouble."""
        call = self.running.get(name)
        if call is not None:
            return call.parts[after:]
        answer = await self.answer(name)
        return [] if answer is None else [answer.part(number) for number in range(after, len(answer.ends))]

    async def new_parts(self, name: str) -> list[bytes]:
        """The parts since the last time; a job that began anew has all of its parts again. Raises JobTrouble."""
        state = await self.get(name)
        return [] if state is None else await self._cursors.new_parts(state, self.parts)

    async def listed(self, states: tuple[int, ...], model: str, before: int, most: int) -> list[JobState]:
        """The newest jobs. Raises JobTrouble."""
        jobs = await self._checked(self.store.read, "listed", states, model, before, most)
        held = self.held.listed(states, model) if not before else []
        return (held + [state for job in jobs or () if (state := self._state(job)) is not None])[:most]

    async def cancel(self, name: str) -> JobState | None:
        """End a job, unless it has ended. Returns its new state. Raises JobTrouble."""
        return self.held.cancel(name) or await self._ended_by(name, CANCELLED)

    async def _ended_by(self, name: str, state: int) -> JobState | None:
        result = await self._checked(self.store.write, "cancel", name, state)
        if result is None:
            return None
        job, ended_now = result
        if ended_now:
            self._drop(name)
            self._has_ended(job)
        return self._state(job)

    async def purge(self, model: str, owner: str | None = None) -> int:
        """Cancel the waiting jobs of a model, or of one owner only. Returns their number. Raises JobTrouble."""
        jobs = await self._checked(self.store.write, "purge", model, owner)
        for job in jobs or ():
            self._has_ended(job)
        return len(jobs or ())

    async def erase(self, name: str) -> JobState | None:
        """Remove the body and the answer of a job that has ended. Raises JobTrouble."""
        return self._state(await self._checked(self.store.write, "erase", name))

    def shorten(self, name: str, seconds: float) -> None:
        """Store a job that has ended for so many seconds from now at most."""
        self.store.write("shorten", name, seconds, then=lambda result: None)

    async def requeue(self, name: str, lifetime: float) -> JobState | None:
        """Queue a failed job once more; None where it has not failed. Raises JobTrouble."""
        job = await self._checked(self.store.write, "requeue", name, lifetime)
        if job is not None:
            self.wake(name)
            self.feed(job.model)
        return self._state(job)

    async def wait(self, name: str, seconds: float) -> JobState | None:
        """A job once it has ended, or as it is after so many seconds, or when the server stops. Raises JobTrouble."""
        with self.watch(name) as changed:
            return await until_ended(
                self.get, name, changed, seconds, lambda state: self._stopping and name not in self.running
            )

    def watch(self, name: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        """An event that is set whenever a job changes. Raises JobTrouble for too many readers."""
        return self._watchers.watch(name)

    def wake(self, name: str) -> None:
        self._watchers.wake(name)
        self.on_change(name)

    async def counts(self) -> list[ModelCount]:
        """How many jobs there are, by model and state."""
        return [ModelCount(model, state, count) for (model, state), count in self._counts().items()]

    def _counts(self) -> Counter[tuple[str, int]]:
        counts = self.store.counts.copy()
        # Not by `+`, which would leave out states without a job.
        counts.update(self.held.counts())
        return counts

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        """Name, help, labels and value of each figure of /metrics; none while there was never a job."""
        if not self._is_open and not self.held.by_id:
            return []
        return gauges.of_jobs(self.store, self._counts(), self.webhooks)

    # Running

    def attach(self, model: str, runner: JobRunner) -> None:
        """Have the jobs of a model run from now on."""
        self.runners[model] = runner
        if self._loop is not None:
            self.feed(model)

    def detach(self, model: str, runner: JobRunner) -> None:
        """Have the jobs of a model wait until it is there again."""
        if self.runners.get(model) is runner:
            del self.runners[model]

    def feed_all(self) -> None:
        for model in self.runners:
            self.feed(model)

    def feed(self, model: str) -> None:
        """Claim as many jobs of a model as its runner can take."""
        runner = self.runners.get(model)
        if runner is None or model in self._claiming or self._stopping or not self._is_open:
            return
        wanted = min(runner.free() - self._running_of[model], self.store.counts[model, QUEUED])
        if wanted <= 0 or self._unstored > MOST_UNSTORED:
            return
        # One claim of a model at a time: `_running_of` does not count the jobs of a claim that is under way.
        self._claiming.add(model)
        self.store.write("claim", model, wanted, then=lambda result: self._claimed(model, runner, result))

    def _claimed(self, model: str, runner: JobRunner, result: list[Claimed] | JobTrouble) -> None:
        self._claiming.discard(model)
        if isinstance(result, JobTrouble):
            return
        for claimed in result:
            call = JobCall(claimed, runner.quota, runner.write_fault, self.over, self.wake, runner.cancel)
            self.running[claimed.job.id] = call
            self._running_of[model] += 1
            self.wake(claimed.job.id)
            fault = runner.submit(call)
            if fault is not None:
                self.over(call, fault)
        if result:
            self.on_outbox()
            # More may be queued: `counts` was of the time before this claim.
            self.feed(model)

    def over(self, call: JobCall, end: JobOutcome | Fault) -> None:
        """Store the end of a run, or have the job wait for its next attempt."""
        if self.running.get(call.job.id) is not call or call.is_over:
            return  # Cancelled meanwhile.
        call.is_over = True
        job = call.job
        runner = self.runners.get(job.model)
        if isinstance(end, Fault):
            if end.code == WAS_CANCELLED.code:
                self._finish(call, "cancel_run", job.seq, job.attempts)
                return
            if end.code in NOT_RUN:
                self._finish(call, "give_back", job.seq, job.attempts)
                return
            if end.code in TRIED_AGAIN and runner is not None and job.attempts < runner.attempts:
                delay = FIRST_DELAY * 4 ** (job.attempts - 1) * random.uniform(0.8, 1.2)  # noqa: S311
                self._finish(call, "delay", job.seq, job.attempts, self.store.now() + delay)
                return
            end = call.outcome(end)
        self._unstored += len(end.body)
        self._finish(call, "finish", job.seq, job.attempts, end)

    def _finish(self, call: JobCall, command: str, *arguments: Any, wait: float = 1.0) -> None:
        """Store the end of a run. If the disk refuses it, the answer stays in memory, and the store tries again."""
        size = len(arguments[-1].body) if command == "finish" else 0

        def stored(result: Any) -> None:
            if isinstance(result, JobTrouble) and result.code in (DISK, UNAVAILABLE) and not self._stopping:
                if self._loop is not None:
                    again = min(wait * 2, LONGEST_RETRY)
                    self._loop.call_later(wait, lambda: self._finish(call, command, *arguments, wait=again))
                return
            self._unstored -= size
            self._leave(call)
            if isinstance(result, Job) and result.is_ended:
                self._has_ended(result)
            self.wake(call.job.id)
            if command == "finish":
                self.feed(call.job.model)

        self.store.write(command, *arguments, then=stored)

    def _leave(self, call: JobCall) -> None:
        if self.running.get(call.job.id) is call:
            del self.running[call.job.id]
            call.release_parts()
            self._running_of[call.job.model] -= 1

    def _drop(self, name: str) -> None:
        """Cancel the call of a job that was cancelled."""
        call = self.running.get(name)
        if call is not None:
            self._leave(call)  # First: `over` then ignores an end that the call still tells.
            call.cancel(call)

    def _has_ended(self, job: Job) -> None:
        self.ended[job.model, job.state] += 1
        self.wake(job.id)
        self.on_outbox()
        self.feed(job.model)


def _hand_out(reports: list[Report]) -> None:
    for then, result in reports:
        try:
            then(result)
        except Exception:
            log.exception("the server itself failed on a job")
