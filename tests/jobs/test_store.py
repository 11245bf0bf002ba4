"""The store of jobs: what is accepted is on disk, what was answered is never computed again, limits hold."""

from __future__ import annotations  # noqa: I001

import errno
import os
import queue
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot.errors import StartError
from panglot.jobs.job import (
    CANCELLED, DISK, DONE, EXPIRED, FAILED, FULL, INTERRUPTED, KEY_REUSED, QUEUED, RUNNING, ID, JobTrouble, JobLimits,
    JobOutcome, Webhook, new_id,
)  # fmt: skip
from support.job_store import Opened, new_job

LARGE = bytes(range(256)) * 1000


def killed_copy(path: Path, target: Path) -> Path:
    """The folder as `kill -9` would leave it."""
    shutil.copytree(path, target)
    return target


@pytest.fixture(params=["folder", "memory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    store = Opened(tmp_path / "jobs" if request.param == "folder" else None)
    yield store
    store.store.close()


def test_a_job_is_stored_run_and_answered(opened: Opened) -> None:
    job, is_new = opened.submit(LARGE, own='{"a": 1}', lane="x")
    assert is_new
    assert ID.fullmatch(job.id)
    (claimed,) = opened.write("claim", "m", 5)
    assert (claimed.body, claimed.head, claimed.lane, claimed.job.attempts) == (LARGE, b"head", "x", 1)
    assert opened.read("get", job.id).state == RUNNING
    ended = opened.write("finish", job.seq, 1, JobOutcome(DONE, 201, b"text/plain\0x: y", LARGE * 2))
    assert (ended.state, ended.status) == (DONE, 201)
    answer = opened.read("answer", job.id)
    assert (answer.status, answer.head, answer.body) == (201, b"text/plain\0x: y", LARGE * 2)
    assert opened.store.counts[("m", DONE)] == 1


def test_the_parts_of_a_stream_can_be_read_one_by_one(opened: Opened) -> None:
    job, _ = opened.submit()
    opened.write("claim", "m", 1)
    ends = b"".join(end.to_bytes(8, "big") for end in (2, 5))
    opened.write("finish", job.seq, 1, JobOutcome(DONE, 200, b"text/plain", b"abcde", ends))
    answer = opened.read("answer", job.id)
    assert [answer.part(number) for number in range(len(answer.ends))] == [b"ab", b"cde"]


def test_an_answer_of_an_earlier_attempt_never_lands(opened: Opened) -> None:
    job, _ = opened.submit()
    opened.write("claim", "m", 1)
    opened.write("delay", job.seq, 1, time.time() - 1)
    assert opened.write("sweep", time.time()).queued == {"m"}
    (claimed,) = opened.write("claim", "m", 1)
    assert claimed.job.attempts == 2
    assert opened.write("finish", job.seq, 1, JobOutcome(DONE, 200, b"", b"old")) is None
    assert opened.read("get", job.id).state == RUNNING


def test_a_cancelled_job_takes_no_answer(opened: Opened) -> None:
    job, _ = opened.submit()
    opened.write("claim", "m", 1)
    cancelled, ended_now = opened.write("cancel", job.id)
    assert (cancelled.state, ended_now) == (CANCELLED, True)
    assert opened.write("finish", job.seq, 1, JobOutcome(DONE, 200, b"", b"late")) is None
    assert opened.write("cancel", job.id)[1] is False


def test_the_same_key_is_the_same_job(opened: Opened) -> None:
    first, is_new = opened.submit(LARGE, key="k", digest=b"1")
    assert is_new
    again, is_new = opened.submit(LARGE, key="k", digest=b"1")
    assert (again.id, is_new) == (first.id, False)
    assert opened.write("claim", "m", 1)[0].body == LARGE
    with pytest.raises(JobTrouble) as caught:
        opened.submit(key="k", digest=b"2")
    assert caught.value.code == KEY_REUSED
    other, is_new = opened.submit(key="k", digest=b"2", owner="another")  # noqa: RUF059
    assert is_new


def test_fifty_repeats_at_once_are_one_job(opened: Opened) -> None:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(50):
        opened.store.submit(new_job(b"{}", key="k", digest=b"1"), answers.put)
    results = [answers.get(timeout=60) for _ in range(50)]
    assert len({job.id for job, _ in results}) == 1
    assert sum(is_new for _, is_new in results) == 1


def test_limits_refuse_new_jobs_and_never_drop_accepted_ones(tmp_path: Path) -> None:
    opened = Opened(None, JobLimits(jobs=3, bytes=1000, queued=2))
    kept = [opened.submit()[0] for _ in range(2)]
    with pytest.raises(JobTrouble) as caught:
        opened.submit()
    assert caught.value.code == FULL
    opened.run(bytes(5000))
    with pytest.raises(JobTrouble):
        opened.submit(bytes(10))
    assert opened.read("answer", kept[0].id).body == bytes(5000)
    opened.store.close()


def test_a_client_comes_back_when_jobs_of_late_have_made_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    real, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])
    opened = Opened(None, JobLimits(jobs=1000, bytes=1 << 20, queued=2))

    def told(model: str = "m") -> int:
        while opened.store.counts[model, QUEUED] < 2:
            opened.submit(model=model)
        with pytest.raises(JobTrouble) as caught:
            opened.submit(model=model)
        return caught.value.retry_after

    assert told() <= 2, "the server has just begun"
    ahead[0] += 300
    assert told() == 60, "no job has ended for long"
    for _ in range(9):
        ahead[0] += 5
        opened.run()
        opened.submit()
    assert told() in (6, 7)
    assert told("n") == 60, "jobs of another model end at another rate"
    for _ in range(100):
        opened.run()
        opened.submit()
    assert told() == 1
    opened.store.close()


def test_jobs_expire_and_are_removed_after_their_time(opened: Opened) -> None:
    job, _ = opened.submit(LARGE, lifetime=0.0, retain=10)
    swept = opened.write("sweep", time.time() + 1)
    assert [(each.id, each.state) for each in swept.expired] == [(job.id, EXPIRED)]
    opened.write("sweep", time.time() + 60)
    assert opened.read("get", job.id) is None
    assert (opened.store.jobs, opened.store.bytes) == (0, 0)


def test_a_failed_job_runs_once_more_on_request(opened: Opened) -> None:
    job, _ = opened.submit(LARGE)
    opened.write("claim", "m", 1)
    opened.write("finish", job.seq, 1, JobOutcome(FAILED, 500, b"", LARGE))
    again = opened.write("requeue", job.id, 60.0)
    assert (again.state, again.attempts, again.status) == (QUEUED, 0, None)
    assert opened.run().state == DONE
    assert opened.write("requeue", job.id, 60.0) is None


def test_an_erased_job_has_no_body_and_no_answer(opened: Opened) -> None:
    job, _ = opened.submit(LARGE)
    opened.run(LARGE)
    assert opened.write("erase", job.id).state == DONE
    assert opened.read("answer", job.id) is None
    assert opened.store.bytes == 0
    if opened.store.folder is not None:
        assert not list((opened.store.folder.path / "bodies").iterdir())


def test_a_webhook_is_due_with_the_state_that_it_tells_of(opened: Opened) -> None:
    job, _ = opened.submit(webhook=Webhook("http://example.com", ("started", "completed")))
    assert opened.read("due_webhooks", time.time(), 10) == []
    opened.run()
    due = opened.read("due_webhooks", time.time(), 10)
    assert [(each.event, each.id) for each in due] == [
        ("started", f"evt_{job.id}_started"), ("completed", f"evt_{job.id}_completed"),
    ]  # fmt: skip
    # Not removed before its receiver is told.
    opened.write("sweep", time.time() + 9999)
    assert opened.read("get", job.id) is not None
    for each in due:
        opened.write("delivered", each.number)
    opened.write("sweep", time.time() + 99999)
    assert opened.read("get", job.id) is None


def test_lists_are_newest_first_and_go_on_by_number(opened: Opened) -> None:
    jobs = [opened.submit()[0] for _ in range(5)]
    listed = opened.read("listed", (), "", 0, 3)
    assert [job.id for job in listed] == [job.id for job in reversed(jobs[2:])]
    rest = opened.read("listed", (QUEUED,), "m", listed[-1].seq, 3)
    assert [job.id for job in rest] == [job.id for job in reversed(jobs[:2])]
    assert opened.read("listed", (DONE,), "", 0, 3) == []


def test_a_clock_that_is_set_back_delays_nothing_and_ends_nothing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, step = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + step[0])
    before = [opened.submit(lifetime=600)[0] for _ in range(2)]
    opened.write("claim", "m", 1)
    opened.write("delay", before[0].seq, 1, opened.store.now() + 0.01)
    step[0] = -7200.0
    after, _ = opened.submit(lifetime=600, retain=600)
    assert after.accepted >= before[1].accepted
    time.sleep(0.02)
    assert opened.write("sweep", opened.store.now()).queued == {"m"}, "the second attempt did not come in time"
    claimed = opened.write("claim", "m", 5)
    assert [each.job.id for each in claimed] == [before[0].id, before[1].id, after.id]
    for each in claimed:
        opened.write("finish", each.job.seq, each.job.attempts, JobOutcome(DONE, 200, b"", b"ok"))
    assert opened.write("sweep", opened.store.now()) == ([], set())
    assert opened.read("answer", after.id).body == b"ok"


def test_after_a_restart_with_an_earlier_clock_jobs_are_there_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(tmp_path / "jobs")
    done, _ = opened.submit()
    opened.run()
    job, _ = opened.submit()
    opened.store.close()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 7200)
    opened = Opened(tmp_path / "jobs")
    assert opened.write("sweep", opened.store.now()) == ([], set())
    assert opened.run().id == job.id
    assert opened.read("answer", done.id).body == b"ok"
    opened.store.close()


# After the end of a server


def test_after_a_kill_every_accepted_job_is_there(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "jobs")
    done, _ = opened.submit(LARGE)
    opened.run(LARGE)
    running, _ = opened.submit(LARGE)
    queued, _ = opened.submit(b"3")
    once, _ = opened.submit(b"4", rerun=False, model="n")
    opened.write("claim", "m", 1)
    opened.write("claim", "n", 1)
    (tmp_path / "jobs" / "bodies" / f"{new_id()}.1").write_bytes(b"half")
    again = Opened(killed_copy(tmp_path / "jobs", tmp_path / "copy"))
    states = {name: again.read("get", name).state for name in (done.id, running.id, queued.id, once.id)}
    assert states == {done.id: DONE, running.id: QUEUED, queued.id: QUEUED, once.id: INTERRUPTED}
    assert again.store.counts[("m", QUEUED)] == 2
    assert again.store.counts[("m", RUNNING)] == 0
    assert again.read("answer", done.id).body == LARGE
    assert "1 file of bodies" in again.report[0]
    assert len(list((tmp_path / "copy" / "bodies").iterdir())) == 2
    # The one that ran comes first, as it was accepted first.
    assert [claimed.job.id for claimed in again.write("claim", "m", 5)] == [running.id, queued.id]
    again.store.close()
    opened.store.close()


def test_a_job_that_ends_the_server_three_times_fails_and_its_neighbours_do_not(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    opened = Opened(path)
    jobs = [opened.submit()[0] for _ in range(3)]
    opened.write("claim", "m", 3)
    for life in range(3):
        path = killed_copy(path, tmp_path / f"life{life}")
        opened.store.close()
        opened = Opened(path)
        # Jobs that ran during a death run one at a time.
        claimed = opened.write("claim", "m", 3)
        assert len(claimed) <= 1
    states = [opened.read("get", job.id).state for job in jobs]
    assert states[0] == FAILED
    assert opened.read("get", jobs[0].id).error["code"] == "server_died"
    assert FAILED not in states[1:]
    opened.store.close()


def test_a_clean_end_leaves_the_jobs_as_they_were(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    job, _ = opened.submit(key="k", digest=b"1")
    opened.write("claim", "m", 1)
    opened.write("give_back", job.seq, 1)
    opened.store.close()
    opened = Opened(tmp_path)
    stored = opened.read("get", job.id)
    assert (stored.state, stored.attempts, stored.crashes) == (QUEUED, 0, 0)
    assert opened.submit(key="k", digest=b"1")[1] is False
    opened.store.close()


def test_a_second_server_on_the_folder_is_refused(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    code = (
        "from pathlib import Path; from panglot.jobs.storage.store import JobStore\n"
        "from panglot.jobs.job import JobLimits\n"
        f"JobStore(Path({str(tmp_path)!r}), JobLimits(1, 1, 1)).open()"
    )
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"in use by pid {os.getpid()} on" in second.stderr
    opened.store.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="--jobs .*file"):
        Opened(tmp_path / "file")


def test_a_database_of_a_later_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    Opened(tmp_path).store.close()
    database = sqlite3.connect(tmp_path / "jobs-1.db")
    database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(StartError) as caught:
        Opened(tmp_path)
    assert "7" in str(caught.value.fix)
    assert "1" in str(caught.value.fix)


# A disk that fails


def test_a_transaction_that_fails_refuses_the_guilty_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(tmp_path)
    folder = opened.store.folder
    assert folder is not None
    original = folder.write

    def write(kind: str, name: str, *pieces: bytes) -> tuple[int, Path]:
        if pieces[-1] == LARGE:
            raise OSError(errno.EIO, "the disk is broken")
        return original(kind, name, *pieces)

    monkeypatch.setattr(folder, "write", write)
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for body in (b"1", LARGE, b"3", LARGE + b"4"):
        opened.store.submit(new_job(body), answers.put)
    results = [answers.get(timeout=60) for _ in range(4)]
    assert [isinstance(result, JobTrouble) for result in results] == [False, True, False, False]
    assert opened.store.jobs == 3
    opened.store.close()


FULL_DISK = """
import queue, sys
from pathlib import Path
from panglot.jobs.job import DISK, DONE, JobTrouble, JobLimits, NewJob, JobOutcome, new_id
from panglot.jobs.storage.store import JobStore

store = JobStore(Path(sys.argv[1]) / "jobs", JobLimits(10**6, 10**10, 10**6))
store.open()
answers = queue.SimpleQueue()

def ask(put, *arguments):
    put(*arguments, then=answers.put)
    return answers.get(timeout=60)

accepted = []
for number in range(10000):
    body = bytes([number % 256]) * (1000 if number % 3 else 70000)
    result = ask(store.submit, NewJob(new_id(), "m", "/predict", b"", body))
    if isinstance(result, JobTrouble):
        assert result.code == DISK, result
        break
    accepted.append(result[0])
assert 20 < len(accepted) < 9000, len(accepted)
for _ in accepted:
    (claimed,) = ask(store.write, "claim", "m", 1)
    result = ask(store.write, "finish", claimed.job.seq, 1, JobOutcome(DONE, 200, b"", claimed.body[:500]))
    assert not isinstance(result, JobTrouble), result
for job in accepted:
    ask(store.write, "erase", job.id)
    result = ask(store.write, "sweep", 9e12)
assert not list((Path(sys.argv[1]) / "jobs" / "bodies").iterdir())
result = ask(store.submit, NewJob(new_id(), "m", "/predict", b"", b"again"))
assert not isinstance(result, JobTrouble), result
print("accepted", len(accepted))
"""


def test_on_a_full_disk_the_answers_of_accepted_jobs_are_still_stored(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    small = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=5m none {disk} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*small, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no process have mounts of its own")
    done = subprocess.run([*small, sys.executable, "-c", FULL_DISK, str(disk)], capture_output=True, text=True)
    assert "accepted" in done.stdout, done.stderr


def test_a_full_disk_has_its_own_code() -> None:
    assert DISK == "jobs_disk"
