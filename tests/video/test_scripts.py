"""Plain scripts with `predict_frame`: a video in, a result per frame out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.descent import children
from support.server import Server, panglot, serving, wait_until
from support.videos import made

LINES = {"accept": "application/x-ndjson"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("frames", "--video-frames", "1000") as running:
        yield running


def test_a_result_per_frame(server: Server) -> None:
    answer = server.client.post("/analyze_video?every=2", content=made(30), headers=LINES)
    assert answer.status_code == 200
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["frame"] for one in found] == list(range(0, 30, 2))
    assert found[1] == {"frame": 2, "seconds": 0.08, "result": {"read": 2, "shape": [48, 208, 3]}}


def test_as_events_and_beside_ordinary_requests(server: Server) -> None:
    answer = server.client.post("/analyze_video", content=made(5))
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.count("data: ") == 5
    assert server.predict(1).json() == [{"seen": 1}]


@pytest.mark.parametrize(
    ("body", "query", "status"),
    [(b"no video", "", 422), (b"", "", 422), (b"x", "?fps=a", 400), (b"x", "?speed=2", 400)],
)
def test_what_is_refused(server: Server, body: bytes, query: str, status: int) -> None:
    answer = server.client.post(f"/analyze_video{query}", content=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_script_that_fails_on_the_way_breaks_the_answer_off(server: Server) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        server.client.post("/analyze_video", content=made(10, first=595))
    server.wait_log("ValueError: no such frame")
    assert server.client.post("/analyze_video", content=made(5)).status_code == 200


def test_who_leaves_ends_it(server: Server) -> None:
    with server.client.stream("POST", "/analyze_video", content=made(900, options={"preset": "ultrafast"})) as answer:
        next(answer.iter_raw())
    wait_until(lambda: not [child for worker in server.workers() for child in children(worker)])
    assert server.predict(1).status_code == 200


def test_scripts_it_does_not_go_with(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("def predict_batch(items):\n    return items\ndef predict_frame(frame):\n    return 1\n")
    with serving(script) as server:
        assert server.client.post("/analyze_video", content=b"x").status_code == 404
    script.write_text("def predict(item):\n    return item\ndef predict_frame(frame):\n    return 1\n")
    done = panglot("serve", str(script), "--port", "0", "--pools", "preprocess=1,inference=1")
    assert done.returncode == 3
    assert "leave out --pools" in done.stderr
