"""What limits say over HTTP: too many jobs, too many bytes, too long a wait, an answer that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from support.server import Server, serving, wait_until

ASYNC = {"prefer": "respond-async"}
LONG = {"steps": 200}
"""Runs for ten seconds, and on where it is cancelled: nobody interrupts it."""


def submit(server: Server, body: Any) -> httpx.Response:
    return server.client.post("/predict", json=body, headers=ASYNC)


def state(server: Server, job: str) -> str:
    return str(server.client.get(f"/jobs/{job}").json()["state"])


def cancel(server: Server, *jobs: httpx.Response) -> None:
    for job in jobs:
        server.client.delete(f"/jobs/{job.json()['id']}")


def assert_full(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "jobs_full")
    assert 1 <= int(answer.headers["retry-after"]) <= 60


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_beyond_the_count_new_jobs_are_refused_and_requests_go_on(where: str, tmp_path: Path) -> None:
    folder = ("--jobs", str(tmp_path / "jobs")) if where == "folder" else ()
    with serving("job_steps", "--workers", "2", "--jobs-count", "2", "--jobs-workers", "1", *folder) as server:
        accepted = [submit(server, LONG), submit(server, {"a": 1})]
        assert [answer.status_code for answer in accepted] == [202, 202]
        assert_full(submit(server, {"a": 2}))
        # No job ends: the longer that goes on, the later a client is to come back.
        wait_until(lambda: int(submit(server, {"a": 2}).headers["retry-after"]) > 2)
        assert server.predict({"a": 3}).json() == {"echo": {"a": 3}}
        cancel(server, *accepted)


def test_beyond_the_bytes_new_jobs_are_refused() -> None:
    with serving("job_steps", "--jobs-bytes", "100kB", "--on-leave", "interrupt") as server:
        running = submit(server, {**LONG, "text": "y" * 60_000})
        assert running.status_code == 202
        assert_full(submit(server, {"text": "y" * 60_000}))
        cancel(server, running)


def test_jobs_of_one_model_that_wait_are_counted_apart_from_those_that_run() -> None:
    with serving("job_steps", "--jobs-queued", "1") as server:
        running = submit(server, LONG)
        wait_until(lambda: state(server, running.json()["id"]) == "running")
        accepted = [submit(server, {"a": number}) for number in range(4)]
        assert accepted[0].status_code == 202
        assert_full(accepted[-1])
        cancel(server, running, *(answer for answer in accepted if answer.status_code == 202))


def test_a_job_that_waits_too_long_expires_and_has_no_result() -> None:
    with serving("job_steps", "--workers", "2", "--jobs-workers", "1", "--jobs-lifetime", "1s") as server:
        running = submit(server, LONG)
        wait_until(lambda: state(server, running.json()["id"]) == "running")
        # Some are with the engine already, ahead of their turn.
        waiting = [submit(server, {"a": number}).json()["id"] for number in range(6)]
        wait_until(lambda: all(state(server, job) == "expired" for job in waiting))
        assert server.client.get(f"/jobs/{waiting[0]}/result").status_code == 410
        assert state(server, running.json()["id"]) == "running", "what runs does not expire"
        cancel(server, running)


def test_a_result_that_is_not_there_yet_says_when_to_come_again() -> None:
    with serving("job_steps") as server:
        running = submit(server, LONG)
        answer = server.client.get(f"/jobs/{running.json()['id']}/result")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_ended")
        assert int(answer.headers["retry-after"]) >= 1
        cancel(server, running)


def test_the_list_goes_on_behind_its_last_job() -> None:
    with serving("job_steps") as server:
        jobs = [submit(server, {"a": number}).json()["id"] for number in range(5)]
        wait_until(lambda: all(state(server, job) == "done" for job in jobs))
        seen: list[str] = []
        before = 0
        for _ in range(3):
            page = server.client.get("/jobs", params={"limit": 2, "before": before}).json()
            seen += [job["id"] for job in page["jobs"]]
            before = page["before"] or 0
        assert seen == jobs[::-1]


def test_a_job_whose_worker_died_is_tried_again_after_a_pause(tmp_path: Path) -> None:
    """Besides, each attempt is a call, which is run once more when it kills its worker."""
    count = tmp_path / "count"
    with serving("job_steps", "--jobs-attempts", "2") as server:
        job = submit(server, {"count": str(count), "exit": 1}).json()["id"]
        wait_until(lambda: state(server, job) == "failed", 60)
        assert server.client.get(f"/jobs/{job}").json()["attempts"] == 2
        assert count.read_text().count("\n") > 2


def test_jobs_of_a_kind_that_kills_workers_are_refused_while_they_wait(tmp_path: Path) -> None:
    """The first job kills two workers: no other of its kind kills a third."""
    runs = tmp_path / "runs"
    with serving("job_steps", "--workers", "1", "--jobs-attempts", "1", "--poison-deaths", "2") as server:
        body = {"count": str(runs), "name": "killer", "sleep": 0.3, "exit": True}
        for job in [submit(server, body).json()["id"] for _ in range(4)]:
            wait_until(lambda job=job: state(server, job) == "failed", 60)
        assert runs.read_text().splitlines() == ["killer"] * 2
