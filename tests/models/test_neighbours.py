"""A model that crashes, hangs or is flooded costs its neighbours nothing."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.models import all_of, write_model
from support.server import Server, serving, wait_until
from support.traffic import times

CRASHES = """
import os, threading, time

def predict(x):
    return x

def load():
    threading.Thread(target=lambda: (time.sleep(0.2), os._exit(1)), daemon=True).start()
"""
SLEEPS = """
import time

def predict(x):
    time.sleep(x)
    return x
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "quick")
    write_model(folder / "slow", body=SLEEPS)
    write_model(folder / "dying", body="import os\n\ndef predict(x):\n    os._exit(x)\n")
    flags = ("--await-threads", "--request-memory", "8MiB", "--restart-delay", "0.05", "--restart-delay-max", "0.1")
    with serving(all_of(folder), *flags, "--poison-deaths", "0") as running:
        yield running


@pytest.mark.quiet
def test_a_crash_loop_leaves_the_others_as_quick_as_they_were(server: Server, tmp_path: Path) -> None:
    """Against the same model in a server of its own, asked in turns: what else the machine does slows both."""
    over = threading.Event()

    def storm() -> None:
        with server.new_client() as client:
            while not over.is_set():
                assert client.post("/models/dying/predict", json=3, timeout=60).status_code == 500

    write_model(tmp_path / "quick")
    thread = threading.Thread(target=storm)
    with serving(all_of(tmp_path)) as alone:
        thread.start()
        try:
            wait_until(lambda: server.metric("panglot_worker_restarts_total", model="dying") >= 2, 30)
            taken: dict[Server, list[float]] = {alone: [], server: []}
            for number in range(times(200, 4000)):
                for one, seconds in taken.items():
                    began = time.perf_counter()
                    answer = one.client.post("/models/quick/predict", json=number)
                    seconds.append(time.perf_counter() - began)
                    assert answer.json() == {"model": "quick", "got": number}
        finally:
            over.set()
            thread.join()
    ratio = statistics.median(taken[server]) / statistics.median(taken[alone])
    print(f"beside a crash loop half of the answers take at most {ratio:.2f} times as long")
    # Measured at 1 to 1.3; what a start of the other's worker costs the cores is not ours to bound.
    assert ratio < 4
    assert server.ready() == 200


@pytest.mark.rest("a model that sleeps for seconds")
def test_a_model_that_sleeps_holds_up_nobody(server: Server) -> None:
    with server.new_client() as client:
        thread = threading.Thread(target=lambda: client.post("/models/slow/predict", json=3))
        thread.start()
        wait_until(lambda: server.metric("panglot_requests_in_progress", model="slow") == 1)
        for number in range(20):
            assert server.client.post("/models/quick/predict", json=number).status_code == 200
        assert server.metric("panglot_requests_in_progress", model="slow") == 1
        thread.join()


def test_a_flood_of_bodies_to_one_leaves_room_for_the_others(server: Server) -> None:
    """Eight clients send a body each, and stop before its last byte: more than the room that one model may take."""
    size = 1024 * 1024
    head = f"POST /models/slow/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode()
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(12)]
    try:
        for sock in sockets:
            sock.sendall(head + b" " * (size - 1))
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 3 * size)
        assert server.metric("panglot_request_memory_bytes") < 5 * size
        large = b'"' + b"x" * (size // 2) + b'"'
        assert server.client.post("/models/quick/predict", content=large).status_code == 200
    finally:
        for sock in sockets:
            sock.close()
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_one_that_dies_by_itself_does_not_make_the_server_unready(tmp_path: Path) -> None:
    write_model(tmp_path / "quick")
    write_model(tmp_path / "dying", body=CRASHES)
    with serving(all_of(tmp_path), "--no-await-threads") as server:
        wait_until(lambda: server.metric("panglot_worker_restarts_total", model="dying") >= 2, 30)
        assert server.ready() == 200
        assert server.client.post("/models/quick/predict", json=1).status_code == 200
