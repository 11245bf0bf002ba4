"""Run by test_stalled_clients.py in a network namespace of its own, in which one client's address can be lost."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator

import pytest

from support.raw import post
from support.server import Server, serving, wait_until

CLIENT = "10.9.0.2"
FLAGS = ("--workers", "1", "--peer-timeout", "1s", "--write-stall", "1s")
STREAMS = {"of many values": {"count": 100_000, "pause": 0.02}, "in which nothing comes": {"count": 9, "pause": 5}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("stream", *FLAGS) as running:
        yield running


@contextlib.contextmanager
def lost(address: str) -> Iterator[None]:
    """From now on whatever is sent there vanishes."""
    subprocess.run(["ip", "address", "del", f"{address}/32", "dev", "lo"], check=True)
    subprocess.run(["ip", "route", "add", "blackhole", f"{address}/32"], check=True)
    yield
    subprocess.run(["ip", "route", "del", "blackhole", f"{address}/32"], check=True)
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)


def in_progress(server: Server) -> float:
    return server.metric("panglot_requests_in_progress")


def is_held(server: Server, port: int) -> bool:
    """Whether the server has a connection to that port of the client."""
    found = [connection for process in server.own() for connection in process.net_connections("tcp")]
    return any(connection.raddr and connection.raddr[1] == port for connection in found)


@pytest.mark.parametrize("wanted", STREAMS.values(), ids=STREAMS)
def test_a_stream_to_nobody_ends(server: Server, wanted: dict[str, float]) -> None:
    with socket.create_connection(("127.0.0.1", server.port), source_address=(CLIENT, 0)) as client:
        client.sendall(post(json.dumps(wanted).encode()))
        wait_until(lambda: in_progress(server) == 1)
        if wanted["pause"] < 1:
            assert client.recv(100)
        with lost(CLIENT):
            wait_until(lambda: in_progress(server) == 0, 30, lambda: "the stream is still held")
    assert server.predict({"count": 1, "pause": 0}).status_code == 200


def test_an_idle_connection_to_nobody_is_closed(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), source_address=(CLIENT, 0)) as client:
        client.sendall(post(b'{"count": 1}'))
        assert client.recv(100)
        port = client.getsockname()[1]
        assert is_held(server, port)
        with lost(CLIENT):
            wait_until(lambda: not is_held(server, port), 30, lambda: "the connection is still held")
