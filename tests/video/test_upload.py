"""`POST /analyze_video`: a video in the body, its results as the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.descent import children
from support.server import Server, serving, wait_until
from support.streams import LONG, parsed
from support.videos import make


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("megflow_video", "--video-frames", "500", env={"TEST_PAUSE": "0.002"}) as running:
        yield running


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make(tmp_path_factory.mktemp("clips") / "a.mp4", 40).read_bytes()


def send(server: Server, body: bytes, query: str = "", **headers: str) -> httpx.Response:
    return server.client.post(f"/analyze_video{query}", content=body, headers=headers, timeout=LONG)


def test_results_as_events(server: Server, clip: bytes) -> None:
    answer = send(server, clip)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    events = list(parsed(iter(answer.text.splitlines())))
    assert [one.data["frame"] for one in events[:-1]] == list(range(40))
    assert [json.loads(one.data["message"])["read"] for one in events[:-1]] == list(range(40))
    assert (events[-1].name, events[-1].data["state"]) == ("end", "finished")


def test_results_as_lines(server: Server, clip: bytes) -> None:
    answer = send(server, clip, "?every=4", accept="application/x-ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson"
    *lines, end = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["frame"] for line in lines] == list(range(0, 40, 4))
    assert end["end"]["state"] == "finished"


def test_an_upload_is_not_listed_once_it_is_over(server: Server, clip: bytes) -> None:
    send(server, clip)
    # Its answer may end a moment before it is taken off the list.
    wait_until(lambda: server.client.get("/list").json() == [], LONG)


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 422), (b"no video", 422), (b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/a.ts\n", 422)]
)
def test_what_is_no_video(server: Server, body: bytes, status: int) -> None:
    answer = send(server, body)
    assert (answer.status_code, answer.text) == (
        status,
        "the video cannot be opened: it is not a video in a known format",
    )


def test_limits(server: Server, tmp_path: Path) -> None:
    long = make(tmp_path / "a.mp4", 501, options={"preset": "ultrafast"}).read_bytes()
    answer = send(server, long, accept="application/x-ndjson")
    *lines, end = [json.loads(line) for line in answer.text.splitlines()]
    assert (len(lines), end["end"]["state"], end["end"]["error"]) == (
        500,
        "failed",
        "the video has more than 500 frames",
    )
    assert send(server, b"x", "?fps=no").status_code == 400


def test_who_leaves_ends_the_analysis(server: Server, tmp_path: Path) -> None:
    long = make(tmp_path / "a.mp4", 500, options={"preset": "ultrafast"}).read_bytes()
    with server.client.stream("POST", "/analyze_video?every=1", content=long) as answer:
        next(answer.iter_raw())
    wait_until(lambda: server.client.get("/list").json() == [], LONG)
    wait_until(lambda: not [child for worker in server.workers() for child in children(worker)], LONG)
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0, LONG)
