"""A model without requests has no workers; the next request wakes it and is answered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.traffic import answers, burst

SOON = ("--sleep-after", "0.4s")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("state")
    with serving("sleeper", *SOON, "--workers", "0:2", "--state-folder", str(folder)) as running:
        yield running


def fall_asleep(server: Server) -> None:
    """Wait until the model sleeps and its processes have ended."""
    wait_until(
        lambda: server.metric("panglot_model_state", state="asleep") == 1 and not server.workers(),
        message=lambda: server.log,
    )


def test_a_model_without_requests_has_no_workers_and_is_ready(server: Server) -> None:
    fall_asleep(server)
    assert server.ready() == 200
    assert server.client.get("/v2/models/predict/ready").status_code == 200
    index = server.client.post("/v2/repository/index", json={}).json()
    assert index == [{"name": "predict", "version": "1", "state": "READY", "reason": "asleep"}]
    assert server.client.post("/v2/repository/index", json={"ready": True}).json() == index
    status = server.client.get("/status.json").json()
    assert (status["state"], status["about"]["models"][0]["state"]) == ("asleep", "asleep")
    assert server.metric("panglot_sleeps_total", reason="idle") >= 1
    assert "asleep" in panglot("top", server.url, "--once").stdout


def test_looking_at_a_model_does_not_wake_it(server: Server) -> None:
    fall_asleep(server)
    wakes = server.metric("panglot_wakes_total")
    assert "Double a number" in server.client.get("/openapi.json").text
    assert server.client.get("/", headers={"accept": "text/html"}).status_code == 200
    assert server.client.get("/v2/models/predict").json()["inputs"]
    assert server.metric("panglot_wakes_total") == wakes
    assert not server.workers()


def test_the_first_requests_wake_the_model_once_and_are_all_answered(server: Server) -> None:
    fall_asleep(server)
    wakes = server.metric("panglot_wakes_total")
    given = answers(server, burst(server, [{"number": number} for number in range(16)]))
    assert [answer.json()["doubled"] for answer in given] == [2 * number for number in range(16)]
    assert server.metric("panglot_wakes_total") == wakes + 1


def test_a_worker_that_is_killed_while_it_wakes_costs_no_answer(server: Server) -> None:
    fall_asleep(server)
    with ThreadPoolExecutor(1) as clients:
        answer = clients.submit(server.predict, {"number": 4})
        wait_until(server.workers)
        for worker in server.workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
        assert answer.result().json()["doubled"] == 8


def test_a_job_wakes_the_model(server: Server) -> None:
    fall_asleep(server)
    job = server.predict({"number": 5}, headers={"prefer": "respond-async"})
    assert job.status_code == 202
    result = job.headers["location"] + "/result"
    wait_until(lambda: server.client.get(result).status_code == 200, message=lambda: server.log)
    assert server.client.get(result).json()["doubled"] == 10


def test_a_model_with_a_long_request_stays_awake(server: Server) -> None:
    with ThreadPoolExecutor(1) as clients:
        answer = clients.submit(server.predict, {"number": 1, "sleep": 1.5})
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1 or answer.done())
        while not answer.done():
            asleep = server.metric("panglot_model_state", state="asleep")
            # Only what was seen before the answer counts.
            assert answer.done() or not asleep
    assert answer.result().json()["doubled"] == 2


def test_too_many_requests_for_a_model_that_wakes_are_refused_with_the_time_a_load_takes(tmp_path: Path) -> None:
    flags = (*SOON, "--wake-queue", "2", "--state-folder", str(tmp_path))
    with serving("sleeper", *flags, env={"SLOW_LOAD": "2"}) as server:
        fall_asleep(server)
        given = answers(server, burst(server, [{"number": number} for number in range(6)]), 60)
        refused = [answer for answer in given if answer.status == 503]
        assert len(refused) == 4
        assert {answer.code for answer in refused} == {"waking"}
        assert all(2 <= int(answer.headers["retry-after"]) <= 300 for answer in refused)
        assert sorted(answer.status for answer in given)[:2] == [200, 200]


def test_a_request_waits_no_longer_than_the_wake_timeout(tmp_path: Path) -> None:
    flags = (*SOON, "--wake-timeout", "0.3s", "--state-folder", str(tmp_path))
    with serving("sleeper", *flags, env={"SLOW_LOAD": "2"}) as server:
        fall_asleep(server)
        refused = server.predict({"number": 1})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "waking")
        assert int(refused.headers["retry-after"]) >= 1
        assert server.ready() == 200
        server.wait_log("is awake after")
        # On a slow machine it may sleep again by now.
        wait_until(lambda: server.predict({"number": 1}).status_code == 200, 60, lambda: server.log)


def test_a_model_that_is_woken_too_soon_stays_awake_longer_and_the_log_says_so(tmp_path: Path) -> None:
    with serving("sleeper", *SOON, "--state-folder", str(tmp_path), env={"SLOW_LOAD": "0.5"}) as server:
        fall_asleep(server)
        assert server.predict({"number": 1}).status_code == 200
        server.wait_log(r"slept for \S+ s only, and takes \S+ s to load: from now on it stays awake 2 times as long")


def test_no_workers_without_sleeping_is_a_start_error() -> None:
    done = panglot("serve", str(PACKAGES / "sleeper"), "--workers", "0:4", "--port", "0")
    assert done.returncode == 3
    assert "workers 0:4" in done.stderr
    assert "--sleep-after" in done.stderr
