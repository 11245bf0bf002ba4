"""Calls of /runsync: jobs that are stored only when their clients wait no longer, in whatever front they came."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from support.fronts import client_of, pids
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import on_a_thread

HOSTED = "/v2/any-endpoint"
FINAL = ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED")
ID = re.compile(r"sync-[0-9a-z]{26}-u1")
PLACES = ["memory", "folder", "first front", "second front", "second front, folder"]


def flags_for(place: str, folder: Path) -> tuple[str, ...]:
    flags = ("--jobs", str(folder)) if "folder" in place else ()
    return flags + (("--fronts", "2", "--restart-delay", "0.2") if "front" in place else ())


class Place:
    """A server, and clients of one front of it."""

    def __init__(self, server: Server, place: str) -> None:
        self.server = server
        self._front = int("second" in place) if "front" in place else None
        self.client = self.new_client()

    def new_client(self) -> httpx.Client:
        return self.server.client if self._front is None else client_of(self.server, self._front)

    def sync(self, value: Any, query: str = "", **more: Any) -> dict[str, Any]:
        answer = self.client.post(f"{HOSTED}/runsync{query}", json={"input": value, **more}, timeout=60)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def status(self, job: str) -> dict[str, Any]:
        return dict(self.client.get(f"{HOSTED}/status/{job}").json())

    def ended(self, job: str) -> dict[str, Any]:
        wait_until(lambda: self.status(job)["status"] in FINAL, 60, lambda: str(self.status(job)))
        return self.status(job)

    def workers(self) -> set[int]:
        return {worker.pid for worker in self.server.workers()}


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    flags = flags_for(request.param, tmp_path_factory.mktemp("jobs") / "jobs")
    with serving("runpod_ops", "--workers", "2", "--jobs-attempts", "1", *flags) as server:
        yield Place(server, request.param)


@pytest.fixture(scope="module", params=PLACES)
def generator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    flags = flags_for(request.param, tmp_path_factory.mktemp("jobs") / "jobs")
    with serving("runpod_generator", "--workers", "2", *flags) as server:
        yield Place(server, request.param)


def test_what_is_answered_in_time_is_never_stored(place: Place) -> None:
    before = place.server.metric("panglot_jobs_commits")
    answers = [place.sync({"op": "echo", "n": n}) for n in range(20)]
    assert [answer["output"]["got"]["n"] for answer in answers] == list(range(20))
    assert all({"delayTime", "executionTime", "workerId"} <= answer.keys() for answer in answers)
    assert place.server.metric("panglot_jobs_commits") == before


def test_the_stages_of_the_script_are_timed(place: Place) -> None:
    answer = place.client.post("/runsync", json={"input": {"op": "text"}})
    assert {"inference", "queue", "total"} <= {part.partition(";")[0] for part in re.split(
        r", *", answer.headers["server-timing"])}  # fmt: skip


@pytest.mark.document("runpod.20")
def test_a_job_goes_on_when_its_client_waits_no_longer(place: Place) -> None:
    answer = place.sync({"op": "sleep", "seconds": 2}, "?wait=1000")
    assert (answer["status"], answer["delayTime"] >= 0) == ("IN_PROGRESS", True)
    told = place.ended(answer["id"])
    assert (told["status"], told["output"]) == ("COMPLETED", "slept")
    assert told["executionTime"] >= 2000, "it was not begun anew"


def test_its_progress_is_seen_before_and_after(place: Place) -> None:
    answer = place.sync({"op": "progress", "steps": 12}, "?wait=1000")
    wait_until(lambda: str(place.status(answer["id"]).get("output")).startswith("step "), 20)
    assert place.ended(answer["id"])["output"] == "done"


def test_its_stream_is_read_while_it_runs(generator: Place) -> None:
    answer = generator.sync({"prompt": "a b c d e f", "pause": 0.4}, "?wait=1000")
    assert answer["status"] == "IN_PROGRESS"
    seen, polls = [], []

    def is_over() -> bool:
        told = generator.client.get(f"{HOSTED}/stream/{answer['id']}").json()
        polls.append((told["status"], len(told["stream"])))
        seen.extend(part["output"]["word"] for part in told["stream"])
        return told["status"] in FINAL and not told["stream"]

    wait_until(is_over, 60, lambda: str(polls))
    assert seen == list("abcdef")
    assert any(status == "IN_PROGRESS" and parts for status, parts in polls), polls


def test_it_is_cancelled_while_its_client_waits(place: Place) -> None:
    workers, mark = place.workers(), len(place.server.log)
    waiting = place.new_client()
    body = {"input": {"op": "sleep", "seconds": 60}}
    answer = on_a_thread(lambda: waiting.post("/runsync", json=body, timeout=60).json())
    wait_until(lambda: bool(ID.findall(place.server.log[mark:])), 20)
    job = ID.findall(place.server.log[mark:])[-1]
    assert place.status(job)["status"] == "IN_PROGRESS"
    assert place.client.post(f"{HOSTED}/cancel/{job}").json() == {"id": job, "status": "CANCELLED"}
    assert answer.result(30)["status"] == "CANCELLED"
    assert place.sync({"op": "text"})["output"] == "x"
    assert place.workers() == workers, "the handler was interrupted, not its worker killed"


def test_it_is_cancelled_after_its_client_has_waited(place: Place) -> None:
    workers = place.workers()
    job = place.sync({"op": "sleep", "seconds": 60}, "?wait=1000")["id"]
    assert place.client.post(f"{HOSTED}/cancel/{job}").json() == {"id": job, "status": "CANCELLED"}
    # Two, for the two workers: the one that ran it is free again.
    answers = [on_a_thread(lambda: place.new_client().post("/runsync", json={"input": {"op": "pid"}})) for _ in "ab"]
    assert {answer.result(30).json()["status"] for answer in answers} == {"COMPLETED"}
    assert place.workers() == workers


def test_it_ends_when_its_client_disconnects(place: Place) -> None:
    workers = place.workers()
    leaving = place.new_client()
    with pytest.raises(httpx.ReadTimeout):
        leaving.post("/runsync", json={"input": {"op": "sleep", "seconds": 60}}, timeout=0.5)
    wait_until(lambda: not place.server.metric("panglot_jobs", state="running"), 20)
    assert place.sync({"op": "text"})["output"] == "x"
    assert place.workers() == workers


@pytest.mark.document("runpod.29")
def test_the_lifetime_of_a_job_ends_it_while_it_is_with_a_worker(place: Place) -> None:
    workers = place.workers()
    body = {"input": {"op": "sleep", "seconds": 60}, "policy": {"ttl": 3000}}
    job = place.client.post(f"{HOSTED}/run", json=body).json()["id"]
    wait_until(lambda: place.status(job)["status"] == "IN_PROGRESS", 20)
    assert place.ended(job)["status"] == "TIMED_OUT"
    assert place.sync({"op": "text"})["output"] == "x"
    assert place.workers() == workers, "the handler was interrupted, not its worker killed"


def test_the_longest_run_of_a_policy_holds_for_it_too(place: Place) -> None:
    told = place.sync({"op": "sleep", "seconds": 60}, policy={"executionTimeout": 500})
    assert (told["status"], bool(told["error"])) == ("TIMED_OUT", True)


def test_the_list_goes_on_behind_jobs_whose_clients_wait() -> None:
    with serving("runpod_ops", "--workers", "3") as server:
        stored = {server.client.post("/run", json={"input": {"op": "text"}}).json()["id"] for _ in range(3)}
        body = {"input": {"op": "sleep", "seconds": 60}}
        answers = [on_a_thread(lambda: server.client.post("/runsync", json=body, timeout=90)) for _ in range(2)]
        wait_until(lambda: server.client.get("/jobs").json()["counts"]["running"] == 2, 30)
        seen: list[str] = []
        before, pages = 0, 0
        while before is not None and pages < 10:
            page = server.client.get("/jobs", params={"limit": 2, "before": before}).json()
            seen += [job["id"] for job in page["jobs"]]
            before, pages = page["before"], pages + 1
        for job in seen[:2]:
            server.client.delete(f"/jobs/{job}")
        assert [answer.result(30).json()["status"] for answer in answers] == ["CANCELLED"] * 2
    assert len(seen) == len(set(seen)) == 5, seen
    assert all(any(job in name for name in stored) for job in seen[2:])


def test_more_calls_than_the_queue_takes_wait_as_jobs() -> None:
    with serving("runpod_ops", "--workers", "1", "--queue", "1") as server:
        body = {"input": {"op": "sleep", "seconds": 0.3}}
        answers = [on_a_thread(lambda: server.client.post("/runsync", json=body, timeout=60)) for _ in range(8)]
        assert [answer.result(60).json()["status"] for answer in answers] == ["COMPLETED"] * 8
        assert server.metric("panglot_jobs_commits") > 0


def test_a_job_that_nobody_waits_for_any_more_outlives_the_server(tmp_path: Path) -> None:
    flags = ("--workers", "1", "--jobs", str(tmp_path))
    server = Server(PACKAGES / "runpod_ops", *flags).wait_ready()
    job = server.client.post("/runsync?wait=1000", json={"input": {"op": "sleep", "seconds": 3}}).json()["id"]
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)
    with serving("runpod_ops", *flags) as server:
        wait_until(lambda: server.client.get(f"{HOSTED}/status/{job}").json()["status"] in FINAL, 60)
        assert server.client.get(f"{HOSTED}/status/{job}").json()["output"] == "slept"


@pytest.mark.parametrize("dying", [0, 1])
def test_it_outlives_the_front_that_ran_or_stored_it(dying: int) -> None:
    with serving("runpod_ops", "--workers", "2", "--fronts", "2", "--restart-delay", "0.2") as server:
        client = client_of(server, 1)
        job = client.post("/runsync?wait=1000", json={"input": {"op": "sleep", "seconds": 4}}).json()["id"]
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pids(server)[dying]).kill()

        def status() -> str:
            with contextlib.suppress(httpx.HTTPError):
                return str(server.client.get(f"{HOSTED}/status/{job}").json().get("status"))
            return ""

        wait_until(lambda: status() in FINAL, 90, status)
        assert status() == "COMPLETED"
