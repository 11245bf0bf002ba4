"""What is told of streams is true at any moment, and nothing is kept of those that have gone."""

from __future__ import annotations

import gc
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from support.server import serving
from support.streams import LONG, OVER, ended, start
from support.videos import make

PLATFORM = Path(__file__).resolve().parents[2] / "src" / "panglot_worker/dialects/megflow/platform/always"


def test_analysed_frames_are_those_whose_answer_is_back(tmp_path: Path) -> None:
    make(tmp_path / "clip.mp4", 12)
    with serving("megflow_video", "--uri-root", str(tmp_path), env={"TEST_PAUSE": "0.1"}) as server:
        stream = start(server, "clip.mp4")
        looks = []
        while not looks or looks[-1]["state"] not in OVER:
            looks.append(next(one for one in server.client.get("/list").json() if one["id"] == stream))
            time.sleep(0.01)
        assert all(one["analysed"] <= one["results"] for one in looks)
        assert any(0 < one["analysed"] < one["decoded"] - 1 for one in looks)
        assert (looks[-1]["decoded"], looks[-1]["analysed"], looks[-1]["results"]) == (12, 12, 12)


def test_figures_while_many_streams_come_and_go(tmp_path: Path) -> None:
    make(tmp_path / "clip.mp4", 3)
    with serving("megflow_video", "--uri-root", str(tmp_path)) as server:
        streams = []
        for _ in range(12):
            streams.append(start(server, "clip.mp4"))
            assert server.client.get("/metrics").status_code == 200
            assert all(one["analysed"] <= one["decoded"] for one in server.client.get("/list").json())
        for stream in streams:
            about = ended(server, stream)
            assert (about["state"], about["analysed"], about["lost"]) == ("finished", 3, 0)
    assert "Traceback" not in server.log


GRAPH = """
main = "all"
nodes = [{ name = "shared", ty = "Transform" }]
[[graphs]]
name = "one"
inputs = [{ name = "inp", cap = 2, ports = ["shared:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["shared:out"] }]
[[graphs]]
name = "all"
inputs = [{ name = "inp", cap = 2, ports = ["demux:inp"] }]
outputs = [{ name = "out", cap = 2, ports = ["each:out"] }]
connections = [{ cap = 2, ports = ["demux:out", "each:inp"] }]
nodes = [{ name = "demux", ty = "DynDemux" }, { name = "each", ty = "one" }]
"""


@pytest.fixture
def megflow() -> Any:
    if str(PLATFORM) not in sys.path:
        sys.path.insert(0, str(PLATFORM))
    import megflow as found

    return found


def test_nothing_is_kept_of_users_that_have_gone(megflow: Any) -> None:
    running = megflow.Graph(config_str=GRAPH)

    def use(first: int, count: int) -> int:
        """So many users after another; how many blocks of memory are in use afterwards."""
        for address in range(first, first + count):
            for message in (address, None):
                running.input("inp").send(megflow.Envelope.pack(message, info={"to_addr": address}))
            assert running.output("out").recv().msg == address
        deadline = time.monotonic() + LONG
        while threading.active_count() > threads and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        gc.collect()
        return sys.getallocatedblocks()

    threads = threading.active_count()
    before = use(0, 50)
    after = use(50, 3000)
    running.wait()
    assert after - before < 1000, f"{after - before} blocks are left of 3000 users"
