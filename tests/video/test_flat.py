"""Many streams, one after the other: nothing of them stays."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from support.descent import children
from support.server import Server, serving, wait_until
from support.streams import LONG, ended, start
from support.videos import make

STREAMS = 200 if os.environ.get("PANGLOT_SOAK") else 16
WARM_UP = 4


def measure(server: Server) -> tuple[int, int, int]:
    """File descriptors, threads and memory of the worker."""
    (worker,) = server.workers()
    wait_until(lambda: not children(worker), LONG)
    return worker.num_fds(), worker.num_threads(), worker.memory_full_info().uss


def is_back(server: Server, before: tuple[int, int, int]) -> bool:
    """Whether it has no more descriptors than before, and no more threads: those of a stream end after its decoder."""
    descriptors, threads, _ = measure(server)
    return descriptors <= before[0] and threads <= before[1]


def test_streams_leave_nothing(tmp_path: Path) -> None:
    short = make(tmp_path / "short.mp4", 10)
    long = make(tmp_path / "long.mp4", 1000, options={"preset": "ultrafast"})
    with serving("megflow_video", "--uri-root", str(tmp_path), env={"TEST_PAUSE": "0.001"}) as server:

        def run(count: int) -> None:
            for number in range(0, count, 4):
                streams = [start(server, short), start(server, long), start(server, short), start(server, long)]
                for place, stream in enumerate(streams):
                    if place % 2 or number % 8:
                        server.client.post(f"/stop/{stream}")
                    else:
                        ended(server, stream)
                        server.client.post(f"/stop/{stream}")
            for one in server.client.get("/list").json():
                server.client.post(f"/stop/{one['id']}")

        run(WARM_UP)
        before = measure(server)
        run(STREAMS)
        wait_until(lambda: is_back(server, before), LONG, lambda: f"{before} -> {measure(server)}")
        grown = measure(server)[2] - before[2]
        print("descriptors, threads, bytes:", before, measure(server))
        assert grown < 24 << 20, f"memory grew by {grown} bytes"
        front = psutil.Process(server.process.pid)
        assert front.num_threads() < 10
