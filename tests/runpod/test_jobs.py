"""Jobs as RunPod's clients follow them: on the paths of its SDK's server, and on those of its hosted API."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from panglot import Client
from support.receiver import receiving
from support.server import Server, serving, wait_until
from support.traffic import on_a_thread

HOSTED = "/v2/any-endpoint"
FINAL = ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("runpod_ops", "--workers", "1", "--jobs-attempts", "1") as running:
        yield running


@pytest.fixture(scope="module")
def generator() -> Iterator[Server]:
    with serving("runpod_generator", "--workers", "1") as running:
        yield running


def submitted(server: Server, value: Any, start: str = HOSTED, **more: Any) -> str:
    answer = server.client.post(f"{start}/run", json={"input": value, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def state(server: Server, job: str) -> dict[str, Any]:
    answer = server.client.get(f"{HOSTED}/status/{job}")
    assert (answer.status_code, answer.json()["id"]) == (200, job)
    return dict(answer.json())


def ended(server: Server, job: str) -> dict[str, Any]:
    wait_until(lambda: state(server, job)["status"] in FINAL)
    return state(server, job)


@pytest.mark.document("runpod.16", "runpod.19")
def test_a_job_is_submitted_and_polled_as_often_as_wanted(server: Server) -> None:
    answer = server.client.post(f"{HOSTED}/run", json={"input": {"op": "text"}}).json()
    assert (answer["status"], answer["id"].endswith("-u1")) == ("IN_QUEUE", True)
    for _ in range(2):
        told = ended(server, answer["id"])
        assert (told["status"], told["output"]) == ("COMPLETED", "x")
        assert {"delayTime", "executionTime"} <= told.keys()


@pytest.mark.document("runpod.16")
def test_a_post_on_the_short_path_waits_for_the_end_as_the_sdks_server_does(server: Server) -> None:
    answer = server.client.post("/run", json={"input": {"op": "sleep", "seconds": 0.5}}).json()
    assert answer["status"] == "IN_PROGRESS"
    told = server.client.post(f"/status/{answer['id']}").json()
    assert (told["status"], told["output"]) == ("COMPLETED", "slept")
    assert server.client.get(f"/status/{answer['id']}").json() == told


@pytest.mark.document("runpod.22")
def test_an_unknown_id_is_a_failed_job_and_not_found_on_the_hosted_path(server: Server) -> None:
    for name in ("nothing", "0" * 26 + "-u1"):
        told = {"id": name, "status": "FAILED", "error": "Job ID not found"}
        for path in ("status", "stream", "cancel", "retry"):
            short = server.client.post(f"/{path}/{name}")
            hosted = server.client.post(f"{HOSTED}/{path}/{name}")
            assert (short.status_code, short.json(), hosted.status_code) == (200, told, 404)


@pytest.mark.document("runpod.12")
def test_progress_is_the_output_of_a_job_in_progress(server: Server) -> None:
    job = submitted(server, {"op": "progress", "steps": 8})
    seen = set()

    def is_over() -> bool:
        told = state(server, job)
        seen.add((told["status"], told.get("output")))
        return told["status"] in FINAL

    wait_until(is_over)
    assert ("COMPLETED", "done") in seen
    assert any(status == "IN_PROGRESS" and str(output).startswith("step ") for status, output in seen), seen


def test_a_job_whose_client_has_the_answer_leaves_the_store(server: Server) -> None:
    answer = server.client.post("/runsync", json={"input": {"op": "text"}}).json()
    wait_until(lambda: server.client.get(f"{HOSTED}/status/{answer['id']}").status_code == 404)


def test_answered_requests_leave_the_store_at_once_however_large_they_were(server: Server) -> None:
    """Jobs in memory have space for 64 MB: 100 MB of requests, one after the other, are no reason to refuse one."""
    body = {"input": {"op": "text", "data": "x" * 2_000_000}}
    assert [server.client.post("/runsync", json=body).status_code for _ in range(50)] == [200] * 50


@pytest.mark.document("runpod.20")
def test_a_job_that_lasts_longer_than_the_wait_is_polled(server: Server) -> None:
    answer = server.client.post("/runsync?wait=1000", json={"input": {"op": "sleep", "seconds": 2}}).json()
    assert answer["status"] == "IN_PROGRESS"
    assert ended(server, answer["id"])["output"] == "slept"


def test_a_wait_of_many_digits_is_the_longest(server: Server) -> None:
    answer = server.client.post(f"/runsync?wait={'9' * 5_000}", json={"input": {"op": "text"}})
    assert (answer.status_code, answer.json()["status"]) == (200, "COMPLETED")


@pytest.mark.document("runpod.18", "runpod.27")
def test_jobs_are_cancelled_while_they_wait_and_while_they_run(server: Server) -> None:
    workers = {worker.pid for worker in server.workers()}
    running = submitted(server, {"op": "sleep", "seconds": 60})
    wait_until(lambda: state(server, running)["status"] == "IN_PROGRESS")
    waiting = submitted(server, {"op": "text"})
    for job in (waiting, running):
        answer = server.client.post(f"{HOSTED}/cancel/{job}").json()
        assert answer == {"id": job, "status": "CANCELLED"}
        assert state(server, job)["status"] == "CANCELLED"
    done = ended(server, submitted(server, {"op": "text"}))
    assert server.client.post(f"{HOSTED}/cancel/{done['id']}").json()["status"] == "COMPLETED"
    assert {worker.pid for worker in server.workers()} == workers, "the handler was interrupted, not its worker killed"


@pytest.mark.document("runpod.18")
def test_the_queue_is_purged_and_health_counts_what_there_is(server: Server) -> None:
    jobs = [submitted(server, {"op": "sleep", "seconds": 60}) for _ in range(6)]
    health = server.client.get(f"{HOSTED}/health").json()
    assert health["jobs"].keys() == {"completed", "failed", "inProgress", "inQueue", "retried"}
    assert health["workers"].keys() == {"idle", "initializing", "ready", "running", "throttled"}
    assert health["jobs"]["inProgress"] + health["jobs"]["inQueue"] == len(jobs)
    purged = server.client.post(f"{HOSTED}/purge-queue").json()
    assert (purged["status"], purged["removed"] >= 1) == ("completed", True)
    states = [state(server, job)["status"] for job in jobs]
    assert states.count("CANCELLED") == purged["removed"]
    for job in jobs:
        server.client.post(f"{HOSTED}/cancel/{job}")


@pytest.mark.document("runpod.18")
def test_a_failed_job_runs_again_with_its_id(server: Server) -> None:
    job = submitted(server, {"op": "raise"})
    first = ended(server, job)
    assert first["status"] == "FAILED"
    assert server.client.post(f"{HOSTED}/retry/{job}").json()["id"] == job
    assert ended(server, job)["status"] == "FAILED"
    done = ended(server, submitted(server, {"op": "text"}))
    refused = server.client.post(f"{HOSTED}/retry/{done['id']}")
    assert (refused.status_code, "COMPLETED" in refused.json()["error"]) == (400, True)


@pytest.mark.document("runpod.24")
def test_a_job_whose_worker_dies_is_a_failed_job_with_status_200(server: Server) -> None:
    answer = server.client.post("/runsync", json={"input": {"op": "die"}})
    told = answer.json()
    assert (answer.status_code, told["status"], bool(told["error"])) == (200, "FAILED", True)


@pytest.mark.document("runpod.23")
def test_a_job_that_overruns_its_policy_has_timed_out(server: Server) -> None:
    job = submitted(server, {"op": "sleep", "seconds": 60}, policy={"executionTimeout": 500})
    told = ended(server, job)
    assert (told["status"], bool(told["error"])) == ("TIMED_OUT", True)


def test_the_time_limit_of_a_job_is_no_limit_of_the_requests_beside_it() -> None:
    with serving("runpod_async", "--workers", "1", "--no-rerun") as server:
        beside = submitted(server, {"seconds": 3600})
        wait_until(lambda: state(server, beside)["status"] == "IN_PROGRESS")
        job = submitted(server, {"seconds": 3600}, policy={"executionTimeout": 500})
        assert ended(server, job)["status"] == "TIMED_OUT"
        assert state(server, beside)["status"] == "IN_PROGRESS"
        # The handler has been told to end: it counts the jobs that it runs.
        assert server.client.post("/runsync", json={"input": {}}).json()["output"]["most"] == 2
        assert server.metric("panglot_worker_restarts_total") == 0
        server.client.post(f"{HOSTED}/cancel/{beside}").raise_for_status()


def test_a_webhook_is_refused_where_the_server_may_call_nobody(server: Server) -> None:
    body = {"input": {}, "webhook": "https://example.com/hook"}
    answer = server.client.post("/run", json=body)
    assert (answer.status_code, "--webhook-allow" in answer.json()["error"]) == (400, True)


@pytest.mark.document("runpod.28")
def test_a_webhook_is_told_the_job_as_status_shows_it() -> None:
    with receiving() as receiver, serving("runpod_ops", "--webhook-allow", receiver.host) as server:
        url = f"http://{receiver.host}/hook"
        for op, status in (("text", "COMPLETED"), ("error", "FAILED")):
            receiver.events.clear()
            job = submitted(server, {"op": op}, webhook=url)
            wait_until(lambda: bool(receiver.events), 60)
            told = json.loads(receiver.events[0][1])
            assert (told["id"], told["status"]) == (job, status)
            assert told == state(server, job)


@pytest.mark.document("runpod.29")
def test_a_job_that_waits_longer_than_its_policy_is_not_run(server: Server) -> None:
    # One runs, and one is ready to follow it: of these the time has come.
    running, _ = (submitted(server, {"op": "sleep", "seconds": 3}) for _ in range(2))
    late = submitted(server, {"op": "text"}, policy={"ttl": 500})
    assert ended(server, late)["status"] == "TIMED_OUT"
    assert "output" not in state(server, late)
    assert ended(server, running)["status"] == "COMPLETED"


def test_the_stream_of_a_handler_that_yields_nothing_is_refused(server: Server) -> None:
    job = submitted(server, {"op": "text"})
    told = server.client.get(f"{HOSTED}/stream/{job}").json()
    assert told["error"] == "Stream not supported, handler must be a generator."


# Streams


def word(text: str, number: int) -> dict[str, Any]:
    return {"output": {"word": text, "number": number}}


@pytest.mark.document("runpod.10", "runpod.17")
def test_a_generator_gives_a_list_and_its_parts(generator: Server) -> None:
    answer = generator.client.post("/runsync", json={"input": {"prompt": "a b"}}).json()
    assert answer["output"] == [word("a", 0)["output"], word("b", 1)["output"]]
    assert generator.client.post("/runsync", json={"input": {"prompt": ""}}).json()["output"] == []
    job = submitted(generator, {"prompt": "a b"}, "")
    for _ in range(2):
        told = generator.client.post(f"/stream/{job}").json()
        assert (told["status"], told["stream"]) == ("COMPLETED", [word("a", 0), word("b", 1)])


@pytest.mark.document("runpod.17", "runpod.19")
def test_on_the_hosted_path_each_part_comes_once_until_the_job_has_ended(generator: Server) -> None:
    job = submitted(generator, {"prompt": "a b c d", "pause": 0.5})
    parts: list[Any] = []
    answers = 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        told = generator.client.get(f"{HOSTED}/stream/{job}").json()
        parts += told["stream"]
        answers += bool(told["stream"])
        # As the platform's client does it.
        if told["status"] in FINAL and not told["stream"]:
            break
        time.sleep(0.1)
    assert parts == [word(text, number) for number, text in enumerate("abcd")]
    assert answers > 1


@pytest.mark.document("runpod.10")
def test_a_generator_that_fails_has_failed_the_job_and_its_parts_stay(generator: Server) -> None:
    for prompt, error in (("a raise", "handler: no more words"), ("a fail b", "this word fails")):
        answer = generator.client.post("/runsync", json={"input": {"prompt": prompt}}).json()
        assert (answer["status"], answer["error"], "output" in answer) == ("FAILED", error, False)
        job = submitted(generator, {"prompt": prompt}, "")
        told = generator.client.post(f"/stream/{job}").json()
        assert (told["status"], told["error"], told["stream"]) == ("FAILED", error, [word("a", 0)])


@pytest.mark.document("runpod.10")
def test_an_async_generator_does_the_same() -> None:
    with serving("runpod_async_stream", "--workers", "1") as server:
        assert server.client.post("/runsync", json={"input": {"count": 3}}).json()["output"] == [0, 1, 2]
        told = server.client.post("/runsync", json={"input": {}}).json()
        assert (told["status"], told["error"]) == ("FAILED", "handler: 'count'")


@pytest.mark.document("runpod.25")
def test_the_token_opens_with_and_without_a_word_before_it() -> None:
    with serving("runpod_sleeper", "--workers", "1", env={"PANGLOT_TOKEN": "rpa_secret"}) as server:
        body = {"input": {"prompt": "p"}}
        for value, status in (("Bearer rpa_secret", 200), ("rpa_secret", 200), ("Bearer other", 401), ("", 401)):
            headers = {"authorization": value} if value else {}
            assert server.client.post(f"{HOSTED}/runsync", json=body, headers=headers).status_code == status


def test_whoever_waits_for_a_job_that_has_not_begun_is_told_when_the_server_stops() -> None:
    with serving("runpod_ops", "--workers", "1") as server:

        def stored() -> float:
            return sum(server.metric("panglot_jobs", state=each) for each in ("queued", "running"))

        first, second = (
            on_a_thread(lambda: server.client.post("/runsync", json={"input": {"op": "sleep", "seconds": 3}}))
            for _ in range(2)
        )
        # First these: a short job that came before them would be over at once.
        wait_until(lambda: stored() == 2)
        third = on_a_thread(lambda: server.client.post("/runsync", json={"input": {"op": "text"}}))
        wait_until(lambda: stored() == 3)
        server.process.send_signal(signal.SIGTERM)
        answers = [future.result(60) for future in (first, second, third)]
        assert server.process.wait(60) == 0
    told = [(answer.status_code, answer.json().get("status")) for answer in answers]
    assert (200, "COMPLETED") in told
    assert {status for status, _ in told} <= {200, 503}, "each has an answer"


def test_panglots_own_client_runs_a_handler_as_a_job(server: Server) -> None:
    with Client(server.url) as client:
        job = client.submit({"input": {"op": "echo"}})
        assert job.state()["route"] == "/runsync"
        told = job.result(timeout=60)
        assert (told["status"], told["output"]) == ("COMPLETED", {"got": {"op": "echo"}})
        assert [event.kind for event in job.events()][-1] == "end"
    headers = {"prefer": "respond-async, wait=60"}
    preferred = server.client.post("/runsync", json={"input": {"op": "echo"}}, headers=headers)
    assert preferred.json()["status"] == "COMPLETED"
    assert server.client.get(preferred.headers["location"]).json()["state"] == "done"
