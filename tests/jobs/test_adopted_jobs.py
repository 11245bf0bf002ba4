"""Jobs that run while they are stored, in the front that stores them or in another: none runs twice or for ever."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from panglot.jobs.board import JobBoard
from panglot.jobs.fronts import elsewhere, passing
from panglot.jobs.fronts.elsewhere import JobsElsewhere
from panglot.jobs.fronts.for_fronts import JobsForFronts
from panglot.jobs.held import HeldCall
from panglot.jobs.interface import Jobs
from panglot.jobs.job import DONE, RUNNING, Job, JobOutcome, JobTrouble
from panglot_worker.line import wire
from support.job_board import ANSWER, Board, Runner, a_board, held_call, until
from support.job_store import Opened, new_job

OTHER = 1
"""The index of the front that runs jobs of another's store."""


def payload(number: int, command: str, value: Any) -> memoryview:
    """What the other end of a link hears."""
    return memoryview(b"".join(passing.frame(0, number, command, value)))[wire.HEADER.size :]


class Fronts:
    """The front that stores jobs, and others that are linked with it."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.store = JobsForFronts(board.jobs)
        self.heard: list[str] = []
        """The commands that the store's front has heard."""

    def linked(self, front: JobsElsewhere | None = None) -> JobsElsewhere:
        """A front with a new link: a new one, in the place of the one before, or the same once more."""
        loop, other = asyncio.get_running_loop(), front or JobsElsewhere(durable=False, is_used=lambda: True)

        def to_store(number: int, command: str, value: Any) -> None:
            self.heard.append(command)
            self.store.heard(OTHER, payload(number, command, value))

        def to_other(number: int, command: str, value: Any) -> None:
            loop.call_soon(other.heard, payload(number, command, value))

        self.store.linked(OTHER, to_other)
        other.linked(to_store)
        return other

    async def until_heard(self, command: str) -> None:
        await until(lambda: command in self.heard)


@asynccontextmanager
async def fronts() -> AsyncIterator[Fronts]:
    async with a_board() as board:
        yield Fronts(board)


def adopted(jobs: JobBoard | JobsElsewhere, call: HeldCall) -> asyncio.Future[Job | JobTrouble]:
    """The job of a call, once it is stored."""
    stored: asyncio.Future[Job | JobTrouble] = asyncio.get_running_loop().create_future()
    jobs.adopt(call, stored.set_result)
    return stored


async def assert_place_is_free(board: Board, runner: Runner) -> None:
    """Assert that a model with one place runs the next job."""
    await runner.call_of(await board.submit())


def test_a_job_that_is_being_stored_is_not_started_once_more() -> None:
    async def run() -> None:
        async with a_board() as board:
            runner = board.attach(places=0)
            other = await board.submit()
            go_on = board.hold_up()
            cancelled = asyncio.ensure_future(board.jobs.cancel(other))
            await asyncio.sleep(0)
            runner.places = 1
            board.jobs.feed("m")
            call = held_call(board.jobs, runner)
            stored = adopted(board.jobs, call)
            go_on.set()
            result, _ = await stored, await cancelled
            assert isinstance(result, Job), result
            assert runner.jobs() == []
            board.jobs.over(call, ANSWER)
            await until(lambda: result.id not in board.jobs.running)
            assert await board.name_of_state(result.id) == "done"

    asyncio.run(run())


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_front_that_dies_while_its_job_is_being_stored_leaves_no_run(attempts: int) -> None:
    async def run() -> None:
        async with fronts() as all_fronts:
            board = all_fronts.board
            runner = board.attach(places=1, attempts=attempts)
            other = all_fronts.linked()
            go_on = board.hold_up()
            call = held_call(other, runner)
            adopted(other, call)
            await all_fronts.until_heard("adopt")
            all_fronts.store.lost(OTHER)
            go_on.set()
            await assert_place_is_free(board, runner)
            assert await board.name_of_state(call.new.id) == ("failed" if attempts == 1 else "queued")

    asyncio.run(run())


def test_the_runs_of_a_front_end_when_its_successor_is_linked_first() -> None:
    async def run() -> None:
        async with fronts() as all_fronts:
            board = all_fronts.board
            runner = board.attach(places=1)
            other = all_fronts.linked()
            result = await adopted(other, held_call(other, runner))
            assert isinstance(result, Job)
            all_fronts.linked()
            await assert_place_is_free(board, runner)
            assert await board.name_of_state(result.id) == "failed"

    asyncio.run(run())


def test_a_job_is_cancelled_when_the_way_to_its_store_is_replaced() -> None:
    async def run() -> None:
        async with fronts() as all_fronts:
            board = all_fronts.board
            runner = board.attach(places=1)
            other = all_fronts.linked()
            go_on = board.hold_up()
            call = held_call(other, runner)
            stored = adopted(other, call)
            await all_fronts.until_heard("adopt")
            all_fronts.linked(other)
            assert isinstance(await stored, JobTrouble)
            go_on.set()
            await assert_place_is_free(board, runner)
            assert all_fronts.heard.count("adopt") == 1
            assert await board.name_of_state(call.new.id) == "cancelled"

    asyncio.run(run())


def test_a_job_whose_store_was_too_slow_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "PATIENCE", 0.1)

    async def run() -> None:
        async with fronts() as all_fronts:
            board = all_fronts.board
            runner = board.attach(places=1)
            other = all_fronts.linked()
            go_on = board.hold_up()
            call = held_call(other, runner)
            assert isinstance(await adopted(other, call), JobTrouble)
            go_on.set()
            await assert_place_is_free(board, runner)
            assert await board.name_of_state(call.new.id) == "cancelled"

    asyncio.run(run())


def test_a_job_is_stored_although_its_model_is_gone_from_the_store_s_front() -> None:
    async def run() -> None:
        async with fronts() as all_fronts:
            board, other = all_fronts.board, all_fronts.linked()
            async with asyncio.timeout(30):
                result = await adopted(other, held_call(other, Runner()))
            assert isinstance(result, Job)
            all_fronts.store.lost(OTHER)
            await until(lambda: result.id not in board.jobs.running)
            assert await board.name_of_state(result.id) == "failed"
            answer = await board.jobs.answer(result.id)
            assert answer is not None
            assert b"worker_died" in answer.body

    asyncio.run(run())


def test_a_run_of_another_front_outlasts_the_lifetime_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panglot.jobs.board.SWEEP", 0.01)

    async def run() -> None:
        async with fronts() as all_fronts:
            board, other = all_fronts.board, all_fronts.linked()
            call = held_call(other, board.attach(), lifetime=10.0)
            result = await adopted(other, call)
            assert isinstance(result, Job)
            late = await board.submit(lifetime=10.0, model="another")
            board.ahead += 20
            await board.jobs.wait(late, 30)
            call.ended(call, ANSWER)
            await board.jobs.wait(result.id, 30)
            assert await board.name_of_state(result.id) == "done"

    asyncio.run(run())


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("front", [0, OTHER])
def test_a_job_that_is_cancelled_while_it_is_being_stored_is_cancelled(front: int, has_ended: bool) -> None:
    async def run() -> None:
        async with fronts() as all_fronts:
            board = all_fronts.board
            runner = board.attach(places=1)
            jobs: JobBoard | JobsElsewhere = all_fronts.linked() if front else board.jobs
            as_jobs: Jobs = jobs
            go_on = board.hold_up()
            call = held_call(as_jobs, runner)
            stored = adopted(jobs, call)
            if has_ended:
                call.ended(call, ANSWER)
            told = await jobs.cancel(call.new.id)
            assert told is not None
            assert told.job.state_name == "cancelled"
            go_on.set()
            assert isinstance(await stored, Job)
            await assert_place_is_free(board, runner)
            assert await board.name_of_state(call.new.id) == "cancelled"
            assert await board.jobs.answer(call.new.id) is None

    asyncio.run(run())


def test_a_front_never_takes_a_result_for_the_front_before_it() -> None:
    async def run() -> None:
        async with fronts() as all_fronts:
            board, former = all_fronts.board, all_fronts.linked()
            jobs = [await board.submit() for _ in range(2)]
            go_on = board.hold_up()
            asked = asyncio.ensure_future(former.get(jobs[0]))
            await all_fronts.until_heard("get")
            all_fronts.store.lost(OTHER)
            other = all_fronts.linked()
            also_asked = asyncio.ensure_future(other.get(jobs[1]))
            await until(lambda: all_fronts.heard.count("get") == 2)
            go_on.set()
            state = await also_asked
            assert state is not None
            assert state.job.id == jobs[1]
            asked.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("durable", [False, True])
def test_a_job_that_runs_already_is_stored_with_its_body_and_is_never_queued(tmp_path: Path, durable: bool) -> None:
    opened, large = Opened(tmp_path / "jobs" if durable else None), bytes(range(256)) * 1000
    new = new_job(large, lifetime=60.0)
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    opened.store.write("claim", "m", 1, then=answers.put)
    opened.store.adopt(new, 1000.0, 1001.0, answers.put)
    opened.store.write("claim", "m", 1, then=answers.put)
    before, job, after = (answers.get(timeout=60) for _ in range(3))
    assert (before, after) == ([], [])
    assert (job.state, job.attempts, job.accepted, job.started, job.expires) == (RUNNING, 1, 1000.0, 1001.0, 1060.0)
    assert opened.read("request", job.id) == (b"head", large)
    opened.store.adopt(new, 1000.0, 1001.0, answers.put)
    assert answers.get(timeout=60) is None, "it is stored already"
    assert opened.read("request", job.id) == (b"head", large)
    assert opened.write("finish", job.seq, 1, JobOutcome(DONE, 200, b"", b"ok")).state == DONE
    assert opened.store.jobs == 1
    opened.store.close()
