"""A worker that tells more than anyone can read: its share is logged, the rest is counted, and the server goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, serving, wait_until

RATE = 20_000
WORD = "flood"
SCRIPT = """
import sys


def port():
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if hasattr(getattr(value, "port", None), "tell"):
                return value.port
        frame = frame.f_back


def predict(item):
    if item == "fail":
        raise ValueError("flood " * 200)
    if isinstance(item, list):
        kind, count = item
        told = port()
        for _ in range(count):
            told.tell(10, {"type": kind, "message": "flood " * 200, "traceback": "flood\\n" * 50})
    return item
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    script = tmp_path_factory.mktemp("talkative") / "model.py"
    script.write_text(SCRIPT)
    with serving(script.parent, "--log-rate", str(RATE)) as started:
        yield started


def words_after(server: Server, mark: int) -> int:
    """How many bytes of what a worker told are in the log."""
    return sum(len(line) for line in server.lines[mark:] if WORD in line)


def check(server: Server, mark: int, began: float) -> None:
    # Of a few more the flood of the test before may tell, a second after its first report.
    server.wait_log(r"\.\.\. \d\d+ more records about this worker are left out", after=mark)
    seconds = time.monotonic() - began
    # A record may go beyond its share by itself, and indents are not counted.
    assert words_after(server, mark) < 3 * RATE * (seconds + 2)
    assert server.predict("hello").json() == "hello"
    assert server.metric("panglot_log_dropped_bytes_total") > RATE


@pytest.mark.parametrize("kind", ["warning", "note"])
def test_what_a_worker_tells_is_logged_up_to_a_rate(server: Server, kind: str) -> None:
    mark, began = len(server.lines), time.monotonic()
    answer = server.predict([kind, 3_000])
    assert answer.json() == [kind, 3_000]
    check(server, mark, began)


def test_failures_of_requests_are_logged_up_to_a_rate(server: Server) -> None:
    mark, began = len(server.lines), time.monotonic()
    for _ in range(300):
        assert server.predict("fail").status_code == 500
    check(server, mark, began)
    # A moment later a failure is told whole again.
    time.sleep(1.1)
    mark = len(server.lines)
    assert server.predict("fail").status_code == 500
    server.wait_log("ValueError: flood", after=mark)


def test_an_event_that_is_none_ends_the_worker_and_not_the_log(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT.replace('"message": "flood " * 200', '"message": 7'))
    with serving(tmp_path, "--log-rate", str(RATE)) as server:
        assert server.predict(["sick", 2_000]).status_code == 500
        wait_until(lambda: server.predict("hello").status_code == 200)
    assert json.dumps(server.lines).count("Traceback") < 5
    assert "broke the protocol" in server.log
