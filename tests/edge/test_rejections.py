"""A server that refuses all day holds no more in the evening than in the morning."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.after import measure
from support.raw import post
from support.server import Server, serving, wait_until
from support.traffic import times
from support.wire import Wire

GOOD = post(b"7")
CHUNKED = "Transfer-Encoding: chunked"
MULTIPART = b"multipart/form-data; boundary=B"


def as_form(body: bytes) -> bytes:
    return post(body).replace(b"application/json", MULTIPART)


REJECTED = {
    "not HTTP": (b"\x16\x03\x01\x00\xf1 nonsense\r\n\r\n", 400),
    "two lengths": (post(b"7", "Content-Length: 1", CHUNKED), 400),
    "no Host": (post(b"7", host=""), 400),
    "an evil Host": (post(b"7", host="Host: evil.example"), 403),
    "an evil Origin": (post(b"7", "Origin: http://evil.example"), 403),
    "an unknown path": (post(b"7", path="/nowhere"), 404),
    "a wrong method": (GOOD.replace(b"POST", b"DELETE"), 405),
    "a length beyond the limit": (post(b"", "Content-Length: 100000000"), 413),
    "chunks beyond the limit": (post(b"%x\r\n" % 200_000 + b" " * 200_000 + b"\r\n", CHUNKED), 413),
    "too many chunks": (post(b"1\r\n7\r\n" * 200, CHUNKED), 400),
    "a long path": (GOOD.replace(b"/predict", b"/" + b"a" * 10_000), 414),
    "a long header": (post(b"7", "X: " + "a" * 9_000), 431),
    "many headers": (post(b"7", *[f"X-{number}: 1" for number in range(150)]), 431),
    "a compressed body": (post(b"7", "Content-Encoding: gzip"), 415),
    "an upgrade": (post(b"7", "Upgrade: websocket", "Connection: upgrade"), 400),
    "bad JSON": (post(b'{"a": ' * 30), 400),
    "deep JSON": (post(b"[" * 10_000), 400),
    "a bad form": (as_form(b"--B\r\n\r\n" * 100), 400),
    "a form with too many parts": (as_form(b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' * 100), 413),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("function", "--max-body", "100000", "--max-chunks", "100") as running:
        for _ in range(200):
            assert running.predict(7).status_code == 200
        yield running
        assert running.predict(7).json() == {"got": 7}
        assert running.metric("panglot_worker_restarts_total") == 0
    assert "Traceback" not in running.log


def memory(server: Server) -> int:
    return measure(server).memory + sum(worker.memory_info().rss for worker in server.workers())


def repeat(server: Server, request: bytes, status: int, count: int) -> None:
    """Ask the same thing so often, on as few connections as the server allows."""
    client = Wire(server)
    for _ in range(count):
        if client.closed:
            client.close()
            client = Wire(server)
        client.send(request)
        reply = client.reply()
        assert reply.status == status, reply
        if reply.headers.get("connection") == "close":
            client.closed = True
    client.close()


@pytest.mark.parametrize(("request_bytes", "status"), REJECTED.values(), ids=REJECTED.keys())
def test_refusals_leave_nothing_behind(server: Server, request_bytes: bytes, status: int) -> None:
    """Refused again and again: the same answer every time, and memory, descriptors and budget are as before."""
    repeat(server, request_bytes, status, times(40, 500))
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)
    before, held = measure(server), memory(server)
    repeat(server, request_bytes, status, times(500, 10_000))
    wait_until(lambda: measure(server).fds <= before.fds, 10)
    assert server.metric("panglot_request_memory_bytes") == 0
    assert memory(server) - held < 2 << 20


def test_a_refused_client_that_goes_on_to_send_is_not_cut_off(server: Server) -> None:
    """It looks for an answer when it has sent all: a connection that was reset by then would have lost it."""
    with Wire(server) as client:
        client.socket.sendall(post(b"", f"Content-Length: {16 * 64_000}"))
        for _ in range(16):
            client.socket.sendall(b"x" * 64_000)
            time.sleep(0.2)
        assert client.reply().status == 413
        assert client.wait_closed()


def test_refusals_for_want_of_room() -> None:
    with serving("function", "--request-memory", "50000") as server:
        test_refusals_leave_nothing_behind(server, post(b"", "Content-Length: 60000"), 503)
