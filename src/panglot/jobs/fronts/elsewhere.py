"""The jobs of a server in a front that does not store them: every command goes to the front that stores them.

That front may die. Its successor has every job that was stored. So a command without an answer is sent once more, and a
client notices nothing but the delay. A job that is submitted twice has the same id both times.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from panglot.jobs import gauges
from panglot.jobs.adopting import early_ends
from panglot.jobs.clock import SteadyClock
from panglot.jobs.fronts import passing
from panglot.jobs.fronts.adopted import AdoptedRuns
from panglot.jobs.fronts.sending import SendCommand
from panglot.jobs.held import WAS_CANCELLED, HeldCall, HeldJobs
from panglot.jobs.interface import JobState, ModelCount
from panglot.jobs.job import RUNNING, UNAVAILABLE, JobTrouble, NewJob, StoredAnswer
from panglot.jobs.watching import Watchers, until_ended

PATIENCE = 20.0
"""Seconds that a client waits while the front that stores jobs is being started again."""
AWAY = "the process that stores jobs is being started again; try again later"
STOPPING = "the server is stopping"
ONCE = frozenset({"requeue", "adopt"})
"""Commands that have another effect when they are done twice. They are never sent again."""


class PendingCommand(NamedTuple):
    """A command without an answer so far."""

    command: str
    arguments: tuple[Any, ...]
    answer: asyncio.Future[Any]


class JobsElsewhere:
    """A `Jobs` whose store is in another front."""

    def __init__(self, durable: bool, is_used: Callable[[], bool]) -> None:
        self.durable = durable
        self._is_used = is_used
        self._send: SendCommand | None = None
        """None while there is no such front."""
        # Begun anywhere: a result for a front that has died never has the number of a command of its successor.
        self._numbers = itertools.count(secrets.randbits(48) + 1)
        self._pending: dict[int, PendingCommand] = {}
        self._watchers = Watchers()
        self.held = HeldJobs(SteadyClock().now, durable, self._watchers.wake)
        self._adopted = AdoptedRuns(self._tell)
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()

    # The link

    def linked(self, send: SendCommand) -> None:
        """Use this way from now on, first for the commands that were not answered on the way before."""
        if self._send is not None:
            # The way before may be replaced before anybody notes that it is lost.
            self.lost()
        self._send = send
        for name in self._watchers.by_job:
            send(0, "watch", name)
        for number, pending in self._pending.items():
            if not pending.answer.done():
                send(number, pending.command, pending.arguments)
        # Changes while there was no way were not told.
        self._watchers.wake_all()

    def lost(self) -> None:
        """Note that the front that stores jobs is gone."""
        self._send = None
        self._adopted.drop_all()
        for pending in [pending for pending in self._pending.values() if pending.command in ONCE]:
            if not pending.answer.done():
                pending.answer.set_result(JobTrouble(UNAVAILABLE, AWAY))

    def heard(self, payload: memoryview) -> None:
        """Take a result, the ids of jobs that have changed, or the id of a run to cancel. Raises WireError."""
        number, command, value = passing.read(payload)
        if command == "changed":
            for name in value:
                self._watchers.wake(name)
            return
        if command == "drop":
            self._adopted.drop(value)
            return
        pending = self._pending.get(number)
        # None: nobody waits for it any more.
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(value)

    async def _ask(self, command: str, *arguments: Any, within: float = PATIENCE) -> Any:
        """The result of a command. Raises JobTrouble."""
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = PendingCommand(command, arguments, answer)
        try:
            # None: `linked` sends the command, if the front comes back within the time.
            if self._send is not None:
                self._send(number, command, arguments)
            async with asyncio.timeout(min(within, PATIENCE)):
                result = await answer
        except TimeoutError:
            raise JobTrouble(UNAVAILABLE, AWAY) from None
        finally:
            del self._pending[number]
        if isinstance(result, JobTrouble):
            raise result
        return result

    # As Jobs

    @property
    def is_used(self) -> bool:
        return self.durable or self._is_used()

    def submit(self, job: NewJob, then: Callable[[Any], None], within: float = math.inf) -> None:
        if self._stopping:
            then(JobTrouble(UNAVAILABLE, STOPPING))
            return
        task = asyncio.get_running_loop().create_task(self._submit(job, then, within))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submit(self, job: NewJob, then: Callable[[Any], None], within: float) -> None:
        try:
            stored, _ = await self._ask("submit", job, within=within)
        except JobTrouble as trouble:
            then(trouble)
            return
        # The store's own answer is ignored: it takes a job that this front sent twice for a repeat by the client.
        then((stored, stored.id == job.id))

    def adopt(self, call: HeldCall, then: Callable[[Any], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._adopt(call, then, early_ends(call)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _adopt(self, call: HeldCall, then: Callable[[Any], None], ends: list[Any]) -> None:
        try:
            job = await self._ask("adopt", call.new, call.accepted, call.started)
        except JobTrouble as trouble:
            # The store may only be slow. Without this, the job would run for ever there: `then` ends the run.
            self._tell("over", call.new.id, WAS_CANCELLED)
            self.held.remove(call)
            then(trouble)
            return
        self._adopted.add(call, job, ends)
        self.held.remove(call)
        then(job)

    @contextlib.contextmanager
    def watch(self, name: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever a job changes. Raises JobTrouble for too many readers."""
        with self._watchers.watch(name) as changed:
            # The first reader of a job in this front, and below the last.
            if len(self._watchers.by_job[name]) == 1:
                self._tell("watch", name)
            try:
                yield changed
            finally:
                if len(self._watchers.by_job[name]) == 1:
                    self._tell("unwatch", name)

    def _tell(self, command: str, *arguments: Any) -> None:
        """Send a command that has no result."""
        if self._send is not None:
            self._send(0, command, arguments[0] if len(arguments) == 1 else arguments)

    def shorten(self, name: str, seconds: float) -> None:
        self._tell("shorten", name, seconds)

    def gauges(self) -> list[tuple[str, str, dict[str, str], float]]:
        """The held jobs of this front. The front that stores jobs tells of all other jobs."""
        return gauges.of_counts(self.held.counts())

    async def wait(self, name: str, seconds: float) -> JobState | None:
        with self.watch(name) as changed:
            return await until_ended(
                self.get, name, changed, seconds, lambda state: self._stopping and state.job.state != RUNNING
            )

    async def get(self, name: str) -> JobState | None:
        state: JobState | None = self.held.get(name) or await self._ask("get", name)
        return state

    async def by_key(self, owner: str, model: str, key: str) -> JobState | None:
        state: JobState | None = await self._ask("by_key", owner, model, key)
        return state

    async def answer(self, name: str) -> StoredAnswer | None:
        answer: StoredAnswer | None = await self._ask("answer", name)
        return answer

    async def request(self, name: str) -> tuple[bytes, bytes] | None:
        request: tuple[bytes, bytes] | None = await self._ask("request", name)
        return request

    async def parts(self, name: str, after: int) -> list[bytes]:
        parts: list[bytes] = await self._ask("parts", name, after)
        return parts

    async def new_parts(self, name: str) -> list[bytes]:
        parts: list[bytes] = await self._ask("new_parts", name)
        return parts

    async def listed(self, states: tuple[int, ...], model: str, before: int, most: int) -> list[JobState]:
        jobs: list[JobState] = await self._ask("listed", states, model, before, most)
        return jobs

    async def counts(self) -> list[ModelCount]:
        counts: list[ModelCount] = await self._ask("counts")
        return counts

    async def cancel(self, name: str) -> JobState | None:
        state: JobState | None = self.held.cancel(name) or await self._ask("cancel", name)
        return state

    async def purge(self, model: str, owner: str | None = None) -> int:
        number: int = await self._ask("purge", model, owner)
        return number

    async def erase(self, name: str) -> JobState | None:
        state: JobState | None = await self._ask("erase", name)
        return state

    async def requeue(self, name: str, lifetime: float) -> JobState | None:
        state: JobState | None = await self._ask("requeue", name, lifetime)
        return state

    def stop(self) -> None:
        """Take no further job: the server is stopping. Clients that wait for a job that does not run get an answer."""
        self._stopping = True
        self._watchers.wake_all()
