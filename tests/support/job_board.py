"""A board of jobs without a server: a runner that a test plays, a clock that it sets, and a store that it holds up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from panglot.engine.call import DONE as CALL_DONE
from panglot.engine.call import RUNNING as CALL_RUNS
from panglot.engine.call import Call, Fault, Uncounted
from panglot.jobs.board import JobBoard
from panglot.jobs.held import HeldCall
from panglot.jobs.interface import Jobs, JobState
from panglot.jobs.job import DONE, Job, JobLimits, JobOutcome, NewJob
from panglot.jobs.running import JobCall
from support.job_store import new_job

ANSWER = JobOutcome(DONE, 200, b"text/plain", b"ok")
DIED = Fault(500, "worker_died", "its worker died")


class Runner:
    """Runs the jobs of a model as far as a test says: it has the calls that it was given."""

    def __init__(self, places: int = 8, attempts: int = 1) -> None:
        self.quota = Uncounted()
        self.places, self.attempts = places, attempts
        self.calls: list[Call] = []
        self.cancelled: list[Call] = []

    def ends_late(self, job: Job) -> bool:
        return False

    def free(self) -> int:
        return self.places

    def submit(self, call: Call) -> Fault | None:
        self.calls.append(call)
        return None

    def cancel(self, call: Call) -> None:
        self.cancelled.append(call)
        call.state = CALL_DONE

    def write_fault(self, route: str, fault: Fault, request_id: bytes) -> tuple[int, bytes, bytes]:
        return fault.status, b"text/plain", fault.code.encode()

    def jobs(self) -> list[str]:
        """The ids of the jobs of its calls."""
        return [call.job.id for call in self.calls if isinstance(call, JobCall)]

    async def call_of(self, job: str, number: int = 0) -> JobCall:
        """The call of a run of a job; the first run is 0. It has begun."""
        await until(lambda: self.jobs().count(job) > number)
        call = [call for call in self.calls if isinstance(call, JobCall) and call.job.id == job][number]
        call.state = CALL_RUNS
        return call


class Board:
    """A board in memory."""

    def __init__(self) -> None:
        self.ahead = 0.0
        """Seconds by which the clock of the store is ahead."""
        self.jobs = JobBoard(None, JobLimits(100, 1 << 20, 100))
        self.jobs.store.now = lambda: time.time() + self.ahead

    def attach(self, **settings: int) -> Runner:
        runner = Runner(**settings)
        self.jobs.attach("m", runner)
        return runner

    async def submit(self, **more: Any) -> str:
        stored: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.jobs.submit(new_job(b"{}", **more), stored.set_result)
        job, _ = await stored
        return str(job.id)

    def tables(self) -> Any:
        """What a test may replace: the commands of the store."""
        return self.jobs.store.tables

    def hold_up(self) -> threading.Event:
        """Have the store do nothing until the event is set."""
        self.jobs.open()
        go_on = threading.Event()
        self.tables().wait_for_test = lambda: go_on.wait(60)
        self.jobs.store.write("wait_for_test", then=lambda result: None)
        return go_on

    async def state(self, job: str) -> JobState:
        state = await self.jobs.get(job)
        assert state is not None
        return state

    async def name_of_state(self, job: str) -> str:
        return (await self.state(job)).job.state_name


def held_call(jobs: Jobs, runner: Runner, **more: Any) -> HeldCall:
    """The run of a job whose client waits for the answer: it has begun."""
    new: NewJob = new_job(b"{}", **more)
    call = HeldCall(
        new, time.time(), runner.quota, runner.write_fault, lambda call, end: None, jobs.held.changed, runner.cancel
    )
    call.state = CALL_RUNS
    jobs.held.add(call)
    return call


@asynccontextmanager
async def a_board() -> AsyncIterator[Board]:
    board = Board()
    board.jobs.start()
    try:
        yield board
    finally:
        await board.jobs.close()


def with_board(use: Callable[[Board], Awaitable[None]]) -> None:
    async def run() -> None:
        async with a_board() as board:
            await use(board)

    asyncio.run(run())


async def until(condition: Callable[[], object], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
