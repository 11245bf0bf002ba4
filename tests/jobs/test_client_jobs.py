"""Jobs through `panglot.Client`, `AsyncClient` and `panglot call --follow`."""

from __future__ import annotations

import asyncio
import http.server
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot import AsyncClient, CallError, Client
from support.ports import free_port
from support.server import PACKAGES, ROOT, Server, panglot, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("job_steps", "--workers", "2", "--on-leave", "interrupt") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def test_a_job_gives_its_result(client: Client) -> None:
    job = client.submit({"a": 1})
    assert job.result(timeout=30) == {"echo": {"a": 1}}
    assert job.state()["state"] == "done"
    assert client.job(job.id).result() == {"echo": {"a": 1}}, "by its id alone, as after a restart of the program"


def test_a_job_that_fails_raises_what_a_call_raises(client: Client) -> None:
    with pytest.raises(CallError) as called:
        client.ask({"raise": "no"})
    with pytest.raises(CallError) as submitted:
        client.submit({"raise": "no"}).result(30)
    assert (submitted.value.status, submitted.value.code) == (called.value.status, called.value.code)


def test_an_answer_of_503_is_the_script_s_and_is_not_waited_for(client: Client) -> None:
    with pytest.raises(CallError) as failed:
        client.submit({"status": 503}).result(30)
    assert (failed.value.status, failed.value.body) == (503, b"own bytes")


def test_a_result_that_does_not_come_in_time(client: Client) -> None:
    job = client.submit({"sleep": 30})
    with pytest.raises(TimeoutError, match=job.id):
        job.result(timeout=1)
    assert job.cancel()["state"] == "cancelled"
    with pytest.raises(CallError) as cancelled:
        job.result(30)
    assert (cancelled.value.status, cancelled.value.code) == (410, "job_cancelled")


def test_events_tell_progress_parts_and_the_end(client: Client) -> None:
    events = list(client.submit({"steps": 6, "pause": 0.2}).events())
    assert [event.kind for event in events][-2:] == ["state", "end"]
    assert any(event.kind == "progress" and event.data["text"].startswith("step") for event in events)
    job = client.submit({"stream": 4, "pause": 0.05})
    parts = [event for event in job.events() if event.kind == "part"]
    assert len(parts) >= 4
    rest = [event for event in job.events(after=parts[1].id) if event.kind == "part"]
    assert rest == parts[2:], "behind an event that was read"


def test_the_same_key_is_the_same_job(client: Client) -> None:
    first = client.submit({"k": 1}, idempotency_key="the-key")
    assert client.submit({"k": 1}, idempotency_key="the-key").id == first.id
    with pytest.raises(CallError) as reused:
        client.submit({"k": 2}, idempotency_key="the-key")
    assert reused.value.code == "key_reused"


class Streams(http.server.BaseHTTPRequestHandler):
    """A route that makes no jobs: it answers with a stream that does not end."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"data: 1\n\n")
        self.rfile.read()

    def log_message(self, *arguments: Any) -> None:
        pass


def test_a_route_that_makes_no_jobs_is_told_before_its_stream_ends() -> None:
    async def submit(url: str) -> None:
        async with AsyncClient(url, dialect="plain", timeout=10) as client:
            await client.submit({})

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Streams) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/analyze_video"
        with Client(url, dialect="plain", timeout=10) as client, pytest.raises(CallError) as told:
            client.submit({})
        with pytest.raises(CallError) as told_too:
            asyncio.run(submit(url))
        server.shutdown()
    assert str(told.value) == str(told_too.value)
    assert told.value.code == "no_job"
    assert "this route makes no jobs" in told.value.message


def test_all_of_it_with_await(server: Server) -> None:
    async def use() -> tuple[Any, list[str], str]:
        async with AsyncClient(server.url) as client:
            job = await client.submit(a=2)
            kinds = [event.kind async for event in job.events()]
            slow = await client.submit({"sleep": 30})
            cancelled = await slow.cancel()
            with pytest.raises(CallError):
                await slow.result(30)
            return await job.result(30), kinds, cancelled["state"]

    result, kinds, state = asyncio.run(use())
    assert result == {"echo": {"a": 2}}
    assert kinds[-1] == "end"
    assert state == "cancelled"


def test_events_and_results_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    # Not one of the kernel's choice: while nobody listens, the client that tries again could be given it as its own.
    flags = ("--workers", "1", "--jobs", str(tmp_path / "jobs"), "--port", str(free_port()))
    with serving("job_steps", *flags) as first, Client(first.url) as client:
        job = client.submit({"steps": 30, "pause": 0.1})
        events = job.events()
        while next(events).kind != "progress":
            pass
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(10)
        command = [sys.executable, "-m", "panglot", "serve", str(PACKAGES / "job_steps"), *flags]
        second = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT)
        try:
            rest = list(events)
            assert rest[-1].kind == "end"
            assert any(event.kind == "state" and event.data["attempts"] == 2 for event in rest)
            assert job.result(30)["echo"]["steps"] == 30
        finally:
            second.terminate()
            second.wait(20)


def test_follow_prints_the_answers_of_jobs(server: Server) -> None:
    before = server.client.get("/jobs").json()["counts"]["done"]
    done = panglot("call", server.url, '{"steps": 3}', '{"f": 1}', "--follow", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["answer"]["echo"] for row in rows] == [{"steps": 3}, {"f": 1}]
    assert done.returncode == 0
    assert server.client.get("/jobs").json()["counts"]["done"] == before + 2


def test_a_job_goes_on_when_follow_is_interrupted(server: Server) -> None:
    command = [sys.executable, "-m", "panglot", "call", server.url, '{"steps": 60, "pause": 0.1, "g": 1}', "--follow"]
    before = {job["id"] for job in server.client.get("/jobs").json()["jobs"]}

    def new() -> list[dict[str, Any]]:
        return [job for job in server.client.get("/jobs").json()["jobs"] if job["id"] not in before]

    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT) as call:
        wait_until(lambda: [job["state"] for job in new()] == ["running"])
        call.send_signal(signal.SIGINT)
        _, words = call.communicate(timeout=30)
    (job,) = new()
    assert call.returncode == 130
    assert f"the job {job['id']} goes on" in words
    assert job["state"] == "running"
    server.client.delete(f"/jobs/{job['id']}")
