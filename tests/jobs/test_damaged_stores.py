"""What a damaged database leaves of its jobs: no answer is computed again, and no job runs that may not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot.jobs.job import DONE, FAILED, INTERRUPTED, QUEUED, Webhook
from support.job_store import Opened

LARGE = bytes(range(256)) * 1000
LOSE_ROW = "DELETE FROM job WHERE seq = ?"
LOSE_ANSWER = "DELETE FROM payload WHERE position = ? * 2 + 1"
LOSE_BODY = "DELETE FROM payload WHERE position = ? * 2"
LOSE_BOTH = "DELETE FROM payload WHERE position / 2 = ?"
LOSE_END = "UPDATE job SET state = 1, answer_filed = 0, answer_size = 0, status = NULL WHERE seq = ?"


class Damaged:
    """A store that is closed, damaged and opened again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = Opened(path)

    def done(self, answer: bytes = b"ok", **more: Any) -> Any:
        job, _ = self.opened.submit(**more)
        self.opened.run(answer)
        return job

    def lose(self, loss: str, *jobs: Any) -> Opened:
        """Take something of some jobs out of the database's pages, and open what is left."""
        self.opened.store.close()
        database = sqlite3.connect(self.path / "jobs-1.db")
        database.execute("PRAGMA secure_delete = ON").fetchone()
        with database:
            for job in jobs:
                database.execute(loss, (job.seq,))
        database.close()
        with (self.path / "jobs-1.db").open("ab") as file:
            file.write(bytes(100))
        self.opened = Opened(self.path)
        assert "damaged" in self.opened.report[0]
        return self.opened

    def state(self, job: Any) -> int:
        state: int = self.opened.read("get", job.id).state
        return state


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Damaged]:
    damaged = Damaged(tmp_path / "jobs")
    yield damaged
    damaged.opened.store.close()


def test_whole_rows_keep_their_ends_and_answers(store: Damaged) -> None:
    small, large = store.done(b"small"), store.done(LARGE)
    opened = store.lose("SELECT ?", small)
    assert [store.state(job) for job in (small, large)] == [DONE, DONE]
    assert (opened.read("answer", small.id).body, opened.read("answer", large.id).body) == (b"small", LARGE)


def test_a_job_whose_answer_is_lost_runs_again_only_if_it_may(store: Damaged) -> None:
    once, often = store.done(rerun=False), store.done()
    opened = store.lose(LOSE_ANSWER, once, often)
    assert [store.state(job) for job in (once, often)] == [INTERRUPTED, QUEUED]
    error = opened.read("get", once.id).error
    assert error["code"] == "interrupted"
    assert "damaged database lost" in error["message"]
    assert any(once.id in sentence and "may not run twice" in sentence for sentence in opened.report)
    assert [claimed.job.id for claimed in opened.write("claim", "m", 5)] == [often.id]


def test_a_job_whose_row_is_lost_runs_only_if_it_may_run_twice(store: Damaged) -> None:
    once, often = store.opened.submit(rerun=False)[0], store.opened.submit()[0]
    opened = store.lose(LOSE_ROW, once, often)
    assert [store.state(job) for job in (once, often)] == [INTERRUPTED, QUEUED]
    assert [claimed.job.id for claimed in opened.write("claim", "m", 5)] == [often.id]


def test_a_job_whose_body_is_lost_fails_unless_it_is_answered(store: Damaged) -> None:
    answered, waiting = store.done(), store.opened.submit()[0]
    opened = store.lose(LOSE_BODY, answered, waiting)
    assert [store.state(job) for job in (answered, waiting)] == [DONE, FAILED]
    assert opened.read("get", waiting.id).error["code"] == "body_damaged"
    assert any(waiting.id in sentence and "its body is lost; it is failed" in sentence for sentence in opened.report)
    assert opened.read("answer", answered.id).body == b"ok"
    assert (opened.write("claim", "m", 5), opened.write("requeue", waiting.id, 60.0)) == ([], None)


def test_a_job_without_body_and_answer_fails(store: Damaged) -> None:
    job = store.done()
    opened = store.lose(LOSE_BOTH, job)
    assert (store.state(job), opened.read("get", job.id).error["code"]) == (FAILED, "answer_damaged")
    assert (opened.write("claim", "m", 5), opened.write("requeue", job.id, 60.0)) == ([], None)


@pytest.mark.parametrize("loss", [LOSE_ROW, LOSE_END], ids=["row", "end"])
@pytest.mark.parametrize("answer", [b"small", LARGE], ids=["small", "large"])
def test_a_job_with_a_stored_answer_is_never_computed_again(store: Damaged, loss: str, answer: bytes) -> None:
    job = store.done(answer)
    opened = store.lose(loss, job)
    assert store.state(job) == FAILED
    error = opened.read("get", job.id).error
    assert error["code"] == "row_lost"
    assert "was done" in error["message"]
    assert opened.write("claim", "m", 5) == []
    assert opened.read("answer", job.id) is None
    assert [path.read_bytes() for path in (store.path / "lost").glob("*.answers")] == [LARGE] * (answer == LARGE)


def test_the_receiver_is_told_of_a_job_that_ends_by_damage(store: Damaged) -> None:
    hook = Webhook("http://example.com")
    done = store.done(LARGE, webhook=hook)
    once, _ = store.opened.submit(rerun=False, webhook=hook)
    silent = store.opened.submit(rerun=False, webhook=Webhook("http://example.com", ("started",)))[0]
    opened = store.lose(LOSE_ROW, done, once, silent)
    due = {event.id for event in opened.read("due_webhooks", time.time(), 10)}
    assert due == {f"evt_{once.id}_failed", f"evt_{done.id}_failed", f"evt_{done.id}_completed"}


def test_a_database_cut_anywhere_opens_and_loses_no_other_job(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "jobs")
    jobs = {opened.submit(b"%d" % number * 100, own=str(number))[0].id: number for number in range(40)}
    answered = [opened.run(b"answer %d" % number) for number in range(10)]
    opened.store.close()
    size = (tmp_path / "jobs" / "jobs-1.db").stat().st_size
    before: set[str] = set()
    saved: dict[int, tuple[int, int]] = {}
    for cut in range(0, size, 512):
        copy = Path(shutil.copytree(tmp_path / "jobs", tmp_path / "cut"))
        os.truncate(copy / "jobs-1.db", cut)
        again = Opened(copy)
        assert "damaged" in again.report[0]
        listed = again.read("listed", (), "", 0, 200)
        # What was whole in a shorter file is whole in this one too: no cut costs a job that lies before it.
        assert before <= (before := {job.id for job in listed}) <= set(jobs)
        for job in listed:
            head, body = again.read("request", job.id) or (b"head", None)
            assert head == b"head"
            assert job.is_ended or body == b"%d" % jobs[job.id] * 100
        for job in answered:
            stored = again.read("get", job.id)
            if stored is not None and stored.state == DONE:
                assert again.read("answer", job.id).body == b"answer %d" % (job.seq - 1)
        saved[cut] = len(listed), sum(job.state == DONE for job in listed)
        assert again.submit()[1]
        again.store.close()
        shutil.rmtree(copy)
    # Rows lie late in a small file.
    assert saved[0] == (0, 0)
    assert saved[size * 4 // 5 // 512 * 512][0] > 20
    assert saved[size - 512] == (40, 10)


def test_a_missing_database_is_not_taken_for_a_first_start(tmp_path: Path) -> None:
    Opened(tmp_path).store.close()
    (tmp_path / "jobs-1.db").unlink()
    opened = Opened(tmp_path)
    assert "missing or empty" in opened.report[0]
    opened.store.close()


def test_a_damaged_body_fails_its_own_job_alone(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    damaged, _ = opened.submit(LARGE)
    whole, _ = opened.submit(LARGE)
    (path,) = (tmp_path / "bodies").glob(f"{damaged.id}.*")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert [claimed.job.id for claimed in opened.write("claim", "m", 5)] == [whole.id]
    assert opened.read("get", damaged.id).error["code"] == "body_damaged"
    opened.store.close()
