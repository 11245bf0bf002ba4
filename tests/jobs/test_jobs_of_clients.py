"""A page of a dialect sees the jobs of its client, whatever it asks for: no page can forget whose a job is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request

from panglot.jobs.board import JobBoard
from panglot.jobs.job import JobLimits, NewJob, new_id
from panglot.web.access.key_file import ADMIN, INFER, Key
from panglot.web.access.keys import KeyHolder
from panglot.web.jobs.model_jobs import JobsOfClient
from panglot.web.jobs.viewer import Viewer


def viewer(name: str = "", *rights: str) -> Viewer:
    """The client of a request that was admitted with this key; without a name: with the server's token."""
    scope: dict[str, Any] = {"type": "http"}
    if name:
        scope["key_holder"] = KeyHolder(Key(name, b"", may=frozenset(rights or (INFER,))))
    return Viewer.of(Request(scope))


async def submitted(board: JobBoard, owner: str, model: str = "m", key: str | None = None) -> str:
    """The id of a new job, which nobody runs."""
    stored: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    job = NewJob(new_id(), model, "/predict", b"head", b"{}", owner=owner, key=key)
    board.submit(job, stored.set_result)
    assert (await stored)[1]
    return job.id


def with_board(use: Callable[[JobBoard], Awaitable[None]]) -> None:
    async def run() -> None:
        board = JobBoard(None, JobLimits(100, 1 << 20, 100))
        board.start()
        try:
            await use(board)
        finally:
            await board.close()

    asyncio.run(run())


def test_another_client_s_job_is_not_there_for_any_method() -> None:
    async def use(board: JobBoard) -> None:
        job = await submitted(board, "alice", key="k")
        bob = JobsOfClient(board, "m", viewer("bob"))
        assert await bob.find(job) is None
        assert await bob.by_key("k") is None
        assert await bob.wait(job, 30) is None, "at once: nobody waits for it"
        assert await bob.answer(job) is None
        assert await bob.request(job) is None
        assert await bob.parts(job) == await bob.new_parts(job) == []
        assert [state async for state in bob.follow(job)] == []
        assert await bob.cancel(job) is None
        assert await bob.retry(job) is None
        assert await bob.purge() == 0
        alice = JobsOfClient(board, "m", viewer("alice"))
        state = await alice.find(job)
        assert state is not None
        assert state.job.state_name == "queued"
        assert await alice.request(job) == (b"head", b"{}")
        cancelled = await alice.cancel(job)
        assert cancelled is not None
        assert cancelled.job.state_name == "cancelled"

    with_board(use)


def test_the_token_and_an_administrator_s_key_see_all_jobs_of_the_model() -> None:
    async def use(board: JobBoard) -> None:
        job, other = await submitted(board, "alice"), await submitted(board, "alice", model="n")
        for sees in (viewer(), viewer("root", INFER, ADMIN)):
            jobs = JobsOfClient(board, "m", sees)
            assert await jobs.find(job) is not None
            assert await jobs.find(other) is None, "a job of another model"
        assert await JobsOfClient(board, "m", viewer()).purge() == 1

    with_board(use)


def test_a_client_empties_its_own_queue_alone() -> None:
    async def use(board: JobBoard) -> None:
        await submitted(board, "alice")
        job = await submitted(board, "bob")
        assert await JobsOfClient(board, "m", viewer("alice")).purge() == 1
        state = await board.get(job)
        assert state is not None
        assert state.job.state_name == "queued"

    with_board(use)
