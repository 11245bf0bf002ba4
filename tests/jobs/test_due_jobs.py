"""What is due is done, whatever the disk does meanwhile: delayed jobs run again, and no finished job expires."""

from __future__ import annotations

import errno
import sqlite3
import threading
from typing import Any

import pytest

from panglot.engine.call import DONE as CALL_DONE
from panglot.engine.call import QUEUED as CALL_WAITS
from panglot.jobs import board as board_of_jobs
from support.job_board import ANSWER, DIED, Board, until, with_board


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_of_jobs, "SWEEP", 0.01)


def test_a_disk_that_fails_once_keeps_no_delayed_job_from_its_next_attempt() -> None:
    async def use(board: Board) -> None:
        runner = board.attach(attempts=2)
        job, late = await board.submit(), await board.submit(lifetime=10.0)
        first = await runner.call_of(job)
        await until(lambda: late in runner.jobs())
        tables, failed = board.tables(), threading.Event()
        cancel = tables.cancel

        def fail_once(*arguments: Any) -> Any:
            if not failed.is_set():
                failed.set()
                raise sqlite3.OperationalError("disk I/O error")
            return cancel(*arguments)

        tables.cancel = fail_once
        board.ahead += 20
        await until(failed.is_set)
        board.jobs.over(first, DIED)
        await until(lambda: job not in board.jobs.running)
        board.ahead += 20
        await runner.call_of(job, 1)
        await until(lambda: late not in board.jobs.running)
        assert await board.name_of_state(late) == "expired"

    with_board(use)


@pytest.mark.parametrize("state", [CALL_DONE, CALL_WAITS], ids=["here", "elsewhere"])
def test_a_job_whose_answer_waits_for_the_disk_does_not_expire(state: int) -> None:
    async def use(board: Board) -> None:
        runner = board.attach()
        job = await board.submit(lifetime=10.0)
        call = await runner.call_of(job)
        tables, sweeps = board.tables(), 0
        finish, sweep = tables.finish, tables.sweep

        def fail(*arguments: Any) -> Any:
            raise OSError(errno.ENOSPC, "no space left on device")

        def count(*arguments: Any) -> Any:
            nonlocal sweeps
            sweeps += 1
            return sweep(*arguments)

        tables.finish, tables.sweep = fail, count
        call.state = state
        board.jobs.over(call, ANSWER)
        board.ahead += 20
        await until(lambda: sweeps > 2)
        tables.finish = finish
        await until(lambda: job not in board.jobs.running)
        assert await board.name_of_state(job) == "done"
        answer = await board.jobs.answer(job)
        assert answer is not None
        assert answer.body == b"ok"

    with_board(use)
