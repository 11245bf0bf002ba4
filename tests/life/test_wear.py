"""Workers that are replaced while they serve: not again and again where that does not help."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.server import Server, serving, wait_until

PAUSE = ("--restart-delay", "60", "--restart-delay-max", "60")
"""A pause that no test waits for: what happens again at all happens without one."""
HEAVY = """
print("the script is loaded")
kept = [bytearray(b"x" * (%d << 20))]


def predict(request):
    kept.append(bytearray(b"x" * (request << 20)))
    return len(kept)
"""
DISLIKES = """
import pathlib

HERE = pathlib.Path(__file__).parent
with (HERE / "loads").open("a") as loads:
    loads.write("x")
if (HERE / "dislikes").exists():
    raise RuntimeError("this is not the day to load")
%s

def predict(request):
    return request
"""


def write(folder: Path, text: str) -> Path:
    (folder / "model.py").write_text(text)
    return folder


def ask_for(server: Server, seconds: float, value: int) -> None:
    """Ask all the while; everything is answered."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert server.predict(value).status_code == 200
        time.sleep(0.05)


def loads(server: Server) -> int:
    return server.log.count("the script is loaded")


def test_a_limit_below_what_the_script_needs_is_said_once(tmp_path: Path) -> None:
    """No successor could be smaller: it is not tried, and the log says what to do."""
    with serving(write(tmp_path, HEAVY % 100), "--worker-memory", "50MiB") as server:
        line = server.wait_log(r"worker 0 holds (\d+) MiB of memory once loaded, .* \(fix: --worker-memory .*\)")
        assert int(line[1]) > 100
        ask_for(server, 3, 0)
    assert loads(server) == 1
    assert server.log.count("more than worker_memory") == 1


def test_a_worker_that_grows_at_once_is_replaced_at_a_pace(tmp_path: Path) -> None:
    with serving(write(tmp_path, HEAVY % 1), "--worker-memory", "150MiB", *PAUSE) as server:
        assert server.predict(200).status_code == 200
        server.wait_log(r"worker 0 is being replaced: it holds \d+ MiB of memory")
        wait_until(lambda: server.predict(0).json() == 2)
        assert server.predict(200).status_code == 200
        ask_for(server, 2.5, 0)
    assert loads(server) == 2


def test_a_successor_that_fails_is_tried_again_at_a_pace(tmp_path: Path) -> None:
    with serving(write(tmp_path, DISLIKES % ""), "--worker-max-requests", "3", *PAUSE) as server:
        (tmp_path / "dislikes").touch()
        ask_for(server, 2.5, 1)
        said = r"the new worker failed, the old one serves on; the next is tried in 60 s or later: .*model.py:8: "
        server.wait_log(said)
        assert (tmp_path / "loads").read_text() == "xx"


@pytest.mark.one_front("a second worker is the first one of the second front, which then takes no connections")
def test_a_worker_that_does_not_load_is_tried_again_at_a_pace_while_others_answer(tmp_path: Path) -> None:
    """Answers of the others are no sign that it will load."""
    second = '(HERE / "dislikes").touch()'
    with serving(write(tmp_path, DISLIKES % second), "--workers", "2", *PAUSE) as server:
        server.wait_log(
            r"worker 1 did not load: .*model.py:8: importing model.py failed: RuntimeError: this is not the day"
        )
        # It says so of the second failure: after the first there is no pause.
        server.wait_log("worker 1 is started again in 60 s")
        ask_for(server, 2.5, 1)
        assert (tmp_path / "loads").read_text() == "xxx"
