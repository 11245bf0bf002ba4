"""The last answer of a connection: the end of the connection comes with its last byte.

A client often closes as soon as it has the whole answer. If it were the first to close, each request without keep-alive
would cost it a port for a minute, and a busy client has few.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import pytest

from support.server import Server, serving
from support.traffic import times

CLOSE_WAIT = 8
"""The state of a connection whose other side has closed, as the kernel counts states."""
HEAD = (
    "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: x/echo\r\nConnection: close\r\n"
    "Content-Length: {}\r\n\r\n"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("body_digests") as running:
        yield running


def answer_and_state(server: Server, body: bytes) -> tuple[bytes, int]:
    """The body that came back, and the state of the connection in the moment in which its last byte was read."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(HEAD.format(len(body)).encode() + body)
        data = b""
        while not data.endswith(body):
            piece = sock.recv(1 << 20)
            assert piece, data[:200]
            data += piece
        return data.partition(b"\r\n\r\n")[2], sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


@pytest.mark.parametrize("size", [10, 5_000, 200_000])
def test_the_server_has_closed_when_the_client_has_all(size: int, server: Server) -> None:
    for seed in range(times(40, 1000)):
        body = random.Random(seed).randbytes(size)
        assert answer_and_state(server, body) == (body, CLOSE_WAIT)
