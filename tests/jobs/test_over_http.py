"""Jobs over HTTP: submit, poll, wait, follow, cancel, repeat, list."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.fronts import client_of
from support.server import Server, serving

ASYNC = {"prefer": "respond-async"}


@pytest.fixture(scope="module", params=["memory", "folder", "first front", "second front", "second front, folder"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("jobs") / "jobs"
    flags = ("--jobs", str(folder)) if "folder" in request.param else ()
    flags += ("--fronts", "2") if "front" in request.param else ()
    with serving("job_steps", "--workers", "2", "--jobs-attempts", "1", *flags) as server:
        if "front" in request.param:
            server.client = client_of(server, int("second" in request.param))
        yield server


def submit(server: Server, body: Any, **headers: str) -> httpx.Response:
    return server.client.post("/predict", json=body, headers={**ASYNC, **headers})


def ended(server: Server, job: str) -> dict[str, Any]:
    """The job once it has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = server.client.get(f"/jobs/{job}", headers={"prefer": "wait=10"}).json()
        if answer["ended"]:
            return dict(answer)
    raise AssertionError(f"{job} has not ended")


def events(text: str) -> list[tuple[str, str, Any]]:
    """Kind, id and data of server-sent events."""
    told = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            told.append((lines["event"], lines["id"], json.loads(lines["data"])))
    return told


def test_a_job_is_accepted_run_and_answered_with_its_own_bytes(server: Server) -> None:
    answer = submit(server, {"a": 1})
    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    assert answer.headers["preference-applied"] == "respond-async"
    assert job["state"] in ("queued", "running")
    assert answer.headers["x-panglot-durable"] == str(job["durable"]).lower()
    done = ended(server, job["id"])
    assert (done["state"], done["status"], done["attempts"]) == ("done", 200, 1)
    result = server.client.get(done["result"])
    direct = server.client.post("/predict", json={"a": 1})
    assert (result.status_code, result.content) == (200, direct.content)
    assert result.headers["content-type"] == direct.headers["content-type"]


def test_a_script_s_own_status_and_headers_are_the_result_s(server: Server) -> None:
    done = ended(server, submit(server, {"status": 418}).json()["id"])
    result = server.client.get(done["result"])
    assert (result.status_code, result.content, result.headers["x-own"]) == (418, b"own bytes", "yes")
    assert done["state"] == "failed"


def test_large_bodies_and_answers(server: Server) -> None:
    done = ended(server, submit(server, {"text": "y" * 300_000}).json()["id"])
    assert server.client.get(done["result"]).json() == {"echo": {"text": "y" * 300_000}}
    done = ended(server, submit(server, {"large": 500_000}).json()["id"])
    assert len(server.client.get(done["result"]).content) > 500_000


def test_a_script_s_error_is_the_answer_in_the_platform_s_words(server: Server) -> None:
    done = ended(server, submit(server, {"raise": "no"}).json()["id"])
    direct = server.client.post("/predict", json={"raise": "no"})
    result = server.client.get(done["result"])
    assert done["state"] == "failed"
    assert result.status_code == direct.status_code
    assert result.json()["error"]["code"] == direct.json()["error"]["code"] == done["error"]["code"]


def test_a_job_whose_worker_dies_fails_after_its_attempts(server: Server) -> None:
    done = ended(server, submit(server, {"exit": 1}).json()["id"])
    assert (done["state"], done["error"]["code"]) == ("failed", "worker_died")
    assert server.client.post("/predict", json={}).status_code == 200


def test_with_wait_the_answer_itself_comes_when_it_is_done_in_time(server: Server) -> None:
    answer = server.client.post("/predict", json={"b": 2}, headers={"prefer": "respond-async, wait=20"})
    assert (answer.status_code, answer.json()) == (200, {"echo": {"b": 2}})
    assert answer.headers["location"].startswith("/jobs/")
    answer = server.client.post("/predict", json={"sleep": 3}, headers={"prefer": "respond-async, wait=1"})
    assert answer.status_code == 202
    server.client.delete(answer.headers["location"])


def test_the_same_key_is_the_same_job(server: Server) -> None:
    first = submit(server, {"c": 3}, **{"idempotency-key": '"order-17"'})
    again = submit(server, {"c": 3}, **{"idempotency-key": '"order-17"'})
    assert first.json()["id"] == again.json()["id"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = submit(server, {"c": 4}, **{"idempotency-key": "order-17"})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "key_reused")


def test_a_job_that_runs_can_be_cancelled_and_an_ended_one_removed(server: Server) -> None:
    job = submit(server, {"steps": 50}).json()["id"]
    assert server.client.get(f"/jobs/{job}/result").status_code in (409,)
    cancelled = server.client.delete(f"/jobs/{job}")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert server.client.get(f"/jobs/{job}/result").status_code == 410
    done = ended(server, submit(server, {"d": 1}).json()["id"])
    assert server.client.delete(f"/jobs/{done['id']}").json()["result"] is None
    assert server.client.get(f"/jobs/{done['id']}/result").status_code == 410


def test_progress_and_the_end_come_as_events(server: Server) -> None:
    job = submit(server, {"steps": 8, "pause": 0.15}).json()["id"]
    told = events(server.client.get(f"/jobs/{job}/events", timeout=60).text)
    kinds = [kind for kind, _, _ in told]
    assert kinds[-1] == "end"
    assert kinds.count("progress") >= 2
    assert [data["text"] for kind, _, data in told if kind == "progress"][-1].startswith("step")
    assert told[-2][2]["state"] == "done"


def test_parts_of_a_stream_are_events_and_resume_behind_the_last_one_read(server: Server) -> None:
    job = submit(server, {"stream": 5, "pause": 0.05}).json()["id"]
    told = events(server.client.get(f"/jobs/{job}/events", timeout=60).text)
    parts = [(number, data["text"]) for kind, number, data in told if kind == "part"]
    assert [number for number, _ in parts] == [f"1.{position}" for position in range(1, len(parts) + 1)]
    for position, (number, _) in enumerate(parts):
        rest = server.client.get(f"/jobs/{job}/events", headers={"last-event-id": number})
        assert [data["text"] for kind, _, data in events(rest.text) if kind == "part"] == [
            text for _, text in parts[position + 1 :]
        ]
    whole = server.client.get(f"/jobs/{job}/result").text
    assert whole == "".join(text for _, text in parts)


def test_unknown_jobs_are_not_found(server: Server) -> None:
    for name in ("x", "0" * 26, "../../etc/passwd", "u" * 26):
        assert server.client.get(f"/jobs/{name}").status_code == 404
    assert server.client.get(f"/jobs/{'0' * 26}").json()["error"]["code"] == "no_job"


def test_the_list_is_json_or_a_page(server: Server) -> None:
    job = ended(server, submit(server, {"e": 1}).json()["id"])["id"]
    listed = server.client.get("/jobs", params={"state": "done", "limit": 5}).json()
    assert job in [entry["id"] for entry in listed["jobs"]]
    assert listed["counts"]["done"] >= 1
    page = server.client.get("/jobs", headers={"accept": "text/html"})
    assert 'src="pages/jobs.js"' in page.text
    assert '<a href="jobs">Jobs</a>' in server.client.get("/status", headers={"accept": "text/html"}).text
    assert server.client.get("/jobs", params={"state": "odd"}).status_code == 400


@pytest.mark.parametrize("number", ["1" + "0" * 20, "²", "-1", "x"])
def test_odd_numbers_of_clients_are_refused_and_cost_nobody_else_anything(server: Server, number: str) -> None:
    for name in ("before", "limit"):
        answer = server.client.get("/jobs", params={name: number})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_query")
    job = submit(server, {"after": "odd numbers"}).json()["id"]
    assert ended(server, job)["state"] == "done"
    headers = {"last-event-id": f"1.{number}".encode("latin-1")}
    assert "event: end" in server.client.get(f"/jobs/{job}/events", headers=headers).text


def test_a_failed_job_runs_once_more(server: Server, tmp_path: Path) -> None:
    body = {"raise": "no", "count": str(tmp_path / "runs"), "name": "r"}
    job = ended(server, submit(server, body).json()["id"])["id"]
    assert server.client.post(f"/jobs/{job}/retry").status_code == 202
    assert ended(server, job)["state"] == "failed"
    assert (tmp_path / "runs").read_text().splitlines() == ["r", "r"]


def test_jobs_run_beside_requests_on_tensors_routes_too(server: Server) -> None:
    assert server.client.post("/predict", json={"f": 1}).json() == {"echo": {"f": 1}}


def test_a_webhook_is_refused_where_nobody_may_be_called(server: Server) -> None:
    answer = submit(server, {}, **{"job-webhook": "http://127.0.0.1:9/x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no_webhooks")
