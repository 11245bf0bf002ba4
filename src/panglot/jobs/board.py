"""The loop's side of jobs: submitting, following and cancelling them, and feeding them to the engines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from panglot.engine.call import Call, CallProgress, Fault, MemoryQuota
from panglot.jobs.job import (
    DISK,
    QUEUED,
    STATES,
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
from panglot.jobs.store import JobStore, Report

SWEEP = 1.0
"""Seconds between looks at what is due."""
FIRST_DELAY = 5.0
"""Seconds before a second attempt; four times as many before each further one."""
LONGEST_RETRY = 30.0
"""Seconds after which an answer that could not be stored is tried again at the latest."""
MOST_UNSTORED = 64 << 20
"""Bytes of answers that wait for the disk; beyond them no job starts."""
MOST_READERS, MOST_READERS_OF_JOB = 1000, 16

log = logging.getLogger("panglot.jobs")


class JobRunner(Protocol):
    """What runs the jobs of one model."""

    @property
    def quota(self) -> MemoryQuota:
        """What counts the bodies of running jobs."""

    attempts: int
    """How often a job may be started, after deaths of workers."""

    def free(self) -> int:
        """How many more jobs it can take now, of those that it was given and has not answered."""

    def submit(self, call: Call) -> Fault | None:
        """Take the call, or return why not."""

    def cancel(self, call: Call) -> None:
        """Cancel the call."""

    def write_fault(self, route: str, fault: Fault, request_id: bytes) -> tuple[int, bytes, bytes]:
        """Status, head and body of the answer for a fault."""


class JobState(NamedTuple):
    """A job as it is now: what is stored, and what only the running call knows."""

    job: Job
    durable: bool
    progress: CallProgress | None = None
    printed: str = ""
    parts: int = 0
    """How many parts of a streamed answer have come."""


class JobBoard:
    """All jobs of a server. It is used on the event loop alone; the store's thread does the work."""

    def __init__(self, path: Path | None, limits: JobLimits) -> None:
        self.store = JobStore(path, limits, self._deliver)
        self.durable = path is not None
        self.runners: dict[str, JobRunner] = {}
        self.running: dict[str, JobCall] = {}
        """The calls of jobs that run, by the job's id."""
        self.on_outbox: Callable[[], None] = lambda: None
        """Called when a receiver of webhooks may have something to be told."""
        self.ended: Counter[tuple[str, int]] = Counter()
        """Jobs that have ended, by model and state."""
        self.webhooks: Counter[str] = Counter()
        """Tries to tell receivers of webhooks by outcome: delivered, failed, dropped."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = self._stopping = False
        self._claiming: set[str] = set()
        self._running_of: Counter[str] = Counter()
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._readers = 0
        self._unstored = 0
        self._sweeper: asyncio.Task[None] | None = None

    # Life

    def open(self) -> None:
        """Open the store. One in memory is opened by the first job. Raises StartError."""
        if not self._is_open:
            for sentence in self.store.open():
                log.error("jobs: %s", sentence)
            self._is_open = True

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
            if self.store.jobs:
                swept = await self._ask(self.store.write, "sweep", self.store.now())
                if not isinstance(swept, JobTrouble):
                    for job in swept.expired:
                        self._has_ended(job)
                    for model in swept.queued:
                        self.feed(model)
            self.feed_all()
            self.on_outbox()

    @property
    def is_used(self) -> bool:
        """Whether there are jobs, or a folder for them."""
        return self._is_open

    def stop_feeding(self) -> None:
        """Start no further job: the server is stopping. Whoever waits for one that does not run is told so."""
        self._stopping = True
        for name in self._watchers:
            self._wake(name)

    async def close(self) -> None:
        """Give back the jobs that still run, as if they had never run, and close the store."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if not self._is_open:
            return
        for call in list(self.running.values()):
            self.running.pop(call.job.id, None)
            self.store.write("give_back", call.job.seq, call.job.attempts, then=lambda result: None)
        await asyncio.get_running_loop().run_in_executor(None, self.store.close)
        self._is_open = False

    def _deliver(self, reports: list[Report]) -> None:
        """On the store's thread: have the results handed out on the loop."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                self._loop.call_soon_threadsafe(_hand_out, reports)

    async def _ask(self, put: Callable[..., None], *arguments: Any) -> Any:
        """The result of a command or query, which may be a JobTrouble."""
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

    def submit(self, job: NewJob, then: Callable[[Any], None]) -> None:
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

    async def get(self, name: str) -> JobState | None:
        """A job as it is now. Raises JobTrouble."""
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

    async def listed(self, states: tuple[int, ...], model: str, before: int, most: int) -> list[JobState]:
        """The newest jobs. Raises JobTrouble."""
        jobs = await self._checked(self.store.read, "listed", states, model, before, most)
        return [state for job in jobs or () if (state := self._state(job)) is not None]

    async def cancel(self, name: str) -> JobState | None:
        """End a job that has not ended; as it is then. Raises JobTrouble."""
        result = await self._checked(self.store.write, "cancel", name)
        if result is None:
            return None
        job, ended_now = result
        if ended_now:
            self._drop(name)
            self._has_ended(job)
        return self._state(job)

    async def purge(self, model: str, owner: str | None = None) -> int:
        """Cancel the jobs of a model that wait, all or those of an owner; how many these were. Raises JobTrouble."""
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
            self._wake(name)
            self.feed(job.model)
        return self._state(job)

    async def wait(self, name: str, seconds: float) -> JobState | None:
        """A job once it has ended, or as it is after so many seconds, or when the server stops. Raises JobTrouble."""
        until = time.monotonic() + seconds
        with self.watch(name) as changed:
            while True:
                changed.clear()
                state = await self.get(name)
                left = until - time.monotonic()
                if state is None or state.job.is_ended or left <= 0:
                    return state
                if self._stopping and name not in self.running:
                    if self.durable:
                        return state
                    raise JobTrouble(
                        UNAVAILABLE, "the server is stopping, and the job is not stored on disk: send it again"
                    )
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), min(left, 60.0))

    @contextlib.contextmanager
    def watch(self, name: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something of a job has changed. Raises JobTrouble for too many readers."""
        watchers = self._watchers.setdefault(name, set())
        if len(watchers) >= MOST_READERS_OF_JOB or self._readers >= MOST_READERS:
            raise JobTrouble("jobs_readers", "too many clients follow jobs; try again later")
        changed = asyncio.Event()
        watchers.add(changed)
        self._readers += 1
        try:
            yield changed
        finally:
            self._readers -= 1
            watchers.discard(changed)
            if not watchers:
                self._watchers.pop(name, None)

    def _wake(self, name: str) -> None:
        for changed in self._watchers.get(name, ()):
            changed.set()

    def count(self, model: str, state: int) -> int:
        """How many jobs of a model are in a state."""
        return self.store.counts[model, state]

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        """Name, help, labels and value of each figure of /metrics; none while no job was ever stored."""
        if not self._is_open:
            return []
        store = self.store
        shown: Counter[tuple[str, str]] = Counter()
        for (model, state), count in store.counts.items():
            shown[model, STATES[state]] += count
        gauges: list[tuple[str, str, dict[str, str], float]] = [
            ("panglot_jobs", "jobs by model and state", {"job_model": model, "state": state}, count)
            for (model, state), count in sorted(shown.items())
        ]
        gauges.append(("panglot_jobs_bytes", "bytes of bodies and answers of jobs", {}, store.bytes))
        gauges.append(("panglot_jobs_commits", "transactions of the store of jobs", {}, store.commits))
        gauges.append(("panglot_jobs_commit_seconds", "seconds that these took in all", {}, store.commit_seconds))
        gauges.append(("panglot_jobs_refused", "1 while no job is accepted: the disk", {}, float(bool(store.trouble))))
        for outcome, count in sorted(self.webhooks.items()):
            gauges.append(("panglot_webhooks", "tries to tell webhooks, by outcome", {"outcome": outcome}, count))
        return gauges

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
        # One claim of a model at a time: `_running_of` counts what the one before has claimed.
        self._claiming.add(model)
        self.store.write("claim", model, wanted, then=lambda result: self._claimed(model, runner, result))

    def _claimed(self, model: str, runner: JobRunner, result: list[Claimed] | JobTrouble) -> None:
        self._claiming.discard(model)
        if isinstance(result, JobTrouble):
            return
        for claimed in result:
            call = JobCall(claimed, runner.quota, runner.write_fault, self._over, self._wake, runner.cancel)
            self.running[claimed.job.id] = call
            self._running_of[model] += 1
            self._wake(claimed.job.id)
            fault = runner.submit(call)
            if fault is not None:
                self._over(call, fault)
        if result:
            self.on_outbox()
            # Until a claim comes back the counts of the store are those before it.
            self.feed(model)

    def _over(self, call: JobCall, end: JobOutcome | Fault) -> None:
        """Store how a run ended; or have the job wait for its next attempt."""
        if self.running.get(call.job.id) is not call:
            return  # Cancelled meanwhile.
        job = call.job
        runner = self.runners.get(job.model)
        if isinstance(end, Fault):
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
        """Store the end of a run. An answer that the disk does not take stays in memory, and is tried again."""
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
            self._wake(call.job.id)
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
            self._leave(call)
            runner = self.runners.get(call.job.model)
            if runner is not None:
                runner.cancel(call)

    def _has_ended(self, job: Job) -> None:
        self.ended[job.model, job.state] += 1
        self._wake(job.id)
        self.on_outbox()
        self.feed(job.model)


def _hand_out(reports: list[Report]) -> None:
    for then, result in reports:
        try:
            then(result)
        except Exception:
            log.exception("the server itself failed on a job")
