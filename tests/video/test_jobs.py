"""Videos as jobs: the video is stored, and its results are the parts of the job's answer."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot import Client
from support.descent import children
from support.fronts import client_of
from support.server import PACKAGES, Server, serving, wait_until
from support.videos import made

FLAGS = ("--video-frames", "1000", "--max-body", "1M", "--restart-delay", "0.1")
LINES = {"accept": "application/x-ndjson", "prefer": "respond-async"}
SLOW = made(900, options={"preset": "ultrafast"})
"""Some seconds of work. Its frame 600 fails in a plain script, and nobody waits so long for it here."""


@pytest.fixture(scope="module", params=["plain", "graph", "second front"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    package = "megflow_video" if request.param == "graph" else "frames"
    folder = tmp_path_factory.mktemp("jobs") / "jobs"
    several = ("--workers", "2", "--fronts", "2") if request.param == "second front" else ()
    with serving(package, *FLAGS, "--jobs", str(folder), *several, env={"TEST_PAUSE": "0.01"}) as server:
        if several:
            server.client = client_of(server, 1)
        yield server


def submit(server: Server, body: bytes, query: str = "") -> str:
    answer = server.client.post(f"/analyze_video{query}", content=body, headers=LINES)
    assert (answer.status_code, answer.headers["x-panglot-durable"]) == (202, "true"), answer.text
    return str(answer.json()["id"])


def state(server: Server, job: str, seconds: int = 0) -> dict[str, Any]:
    """The job once it has ended, or as it is after so many seconds."""
    return dict(server.client.get(f"/jobs/{job}", headers={"prefer": f"wait={seconds}"}, timeout=60).json())


def frames(text: str) -> list[int]:
    return [line["frame"] for line in map(json.loads, text.splitlines()) if "frame" in line]


def test_the_results_are_those_of_a_request(server: Server) -> None:
    video = made(40)
    job = submit(server, video, "?every=2")
    assert state(server, job, 30)["state"] == "done"
    result = server.client.get(f"/jobs/{job}/result")
    assert result.headers["content-type"] == "application/x-ndjson"
    direct = server.client.post("/analyze_video?every=2", content=video, headers={"accept": LINES["accept"]})
    assert frames(result.text) == frames(direct.text) == list(range(0, 40, 2))


def test_by_the_client(server: Server, tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(made(10))
    with Client(f"{server.url}/analyze_video") as client:
        assert len(client.ask(clip)) >= 10
        job = client.submit(clip)
        parts = [event for event in job.events() if event.kind == "part"]
    assert len(parts) >= 10


def test_what_is_no_video_fails(server: Server) -> None:
    job = submit(server, b"no video")
    assert (state(server, job, 30)["state"], state(server, job)["status"]) == ("failed", 422)
    assert "not a video in a known format" in server.client.get(f"/jobs/{job}/result").text


def test_as_a_job_it_has_the_limit_of_other_bodies(server: Server) -> None:
    large = made(5) + b"\0" * (1 << 20)
    answer = server.client.post("/analyze_video", content=large, headers=LINES)
    assert (answer.status_code, "larger than max_body, 1048576 bytes" in answer.text) == (413, True)
    in_pieces = server.client.post("/analyze_video", content=iter([large[:1000], large[1000:]]), headers=LINES)
    assert in_pieces.status_code == 413
    # A request may have more: this one is read, and played as far as it is a video.
    assert server.client.post("/analyze_video", content=large).status_code in (200, 422)


def test_a_cancelled_job_ends_its_analysis(server: Server) -> None:
    job = submit(server, SLOW)
    wait_until(lambda: state(server, job)["parts"] > 0)
    server.client.delete(f"/jobs/{job}")
    assert state(server, job)["state"] == "cancelled"
    wait_until(lambda: not [child for worker in server.workers() for child in children(worker)])
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)


def test_when_its_worker_dies_it_is_analysed_from_the_start(server: Server) -> None:
    # Enough to be under way when the workers are killed, though a plain script takes a millisecond for a frame.
    workers, job = server.workers(), submit(server, made(500, options={"preset": "ultrafast"}))
    wait_until(lambda: state(server, job)["parts"] > 0)
    for worker in workers:
        worker.kill()
    assert state(server, job, 60)["state"] == "done"
    assert state(server, job)["attempts"] == 2
    assert frames(server.client.get(f"/jobs/{job}/result").text) == list(range(500))


def test_it_outlives_the_server(tmp_path: Path) -> None:
    flags = (*FLAGS, "--jobs", str(tmp_path / "jobs"))
    server = Server(PACKAGES / "frames", *flags).wait_ready()
    job = submit(server, made(300))
    wait_until(lambda: state(server, job)["parts"] > 0)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)
    with serving("frames", *flags) as server:
        assert state(server, job, 60)["state"] == "done"
        assert frames(server.client.get(f"/jobs/{job}/result").text) == list(range(300))
