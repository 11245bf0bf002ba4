"""Fronts that have no file descriptor left for the connection that the parent passes on."""

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import Iterator

import httpx
import psutil

from support.server import serving, wait_until

FEW = 128
BEGUN = b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n"
"""A request whose body never comes, so that its connection is not idle."""


@contextlib.contextmanager
def crowd(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    """Connections that each hold a request open."""
    with contextlib.ExitStack() as held:
        yield [held.enter_context(begun(address)) for _ in range(count)]


def begun(address: tuple[str, int]) -> socket.socket:
    client = socket.create_connection(address, timeout=5)
    # One that was passed on to nobody may be closed already.
    with contextlib.suppress(OSError):
        client.sendall(BEGUN)
    return client


def test_a_front_without_descriptors_loses_the_new_connection_alone() -> None:
    with serving("lent_calls", "--fronts", "2", "--workers", "2") as server:
        fronts = server.fronts()
        for front in fronts:
            resource.prlimit(front.pid, resource.RLIMIT_NOFILE, (FEW, FEW))
        with crowd(("127.0.0.1", httpx.URL(server.url).port or 0), 4 * FEW):
            wait_until(lambda: "no file descriptor" in str(server.log))
            assert server.fronts() == fronts
        # What was lost is counted out, so that both fronts take connections again.
        wait_until(lambda: server.client.get("/v2/health/ready").status_code == 200)
        wait_until(lambda: all(psutil.Process(front.pid).num_fds() < FEW for front in fronts))
        assert server.fronts() == fronts
        for number in range(8):
            body = {"id": number, "seen": "/dev/null", "sleep": 0, "answer": 1}
            assert httpx.post(f"{server.url}/predict", json=body, timeout=20).status_code == 200
