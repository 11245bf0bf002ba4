"""The promise: what is not plain HTTP/1.1 framing is refused, and a client that only stops sending gets its answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw import post, talk
from support.server import Server, serving, wait_until
from support.wire import Wire

GOOD = post(b"7")
CHUNKED = b"1\r\n7\r\n0\r\n\r\n"


def encoded(*lines: str) -> bytes:
    return post(CHUNKED, *(f"Transfer-Encoding: {line}" for line in lines))


def trailed(trailer: str) -> bytes:
    return post(CHUNKED[:-2] + f"{trailer}\r\n\r\n".encode(), "Transfer-Encoding: chunked")


REFUSED = {
    "gzip, chunked": (encoded("gzip, chunked"), {400, 501}),
    "an empty encoding before chunked": (encoded(",chunked"), {400, 501}),
    "chunked and nothing": (encoded("chunked,"), {400, 501}),
    "gzip and chunked on two lines": (encoded("gzip", "chunked"), {400, 501}),
    "identity, chunked": (encoded("identity, chunked"), {400, 501}),
    "HTTP/2.0": (GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"), {505}),
    "HTTP/0.9": (GOOD.replace(b"HTTP/1.1", b"HTTP/0.9"), {400, 505}),
    "RTSP/1.0": (GOOD.replace(b"HTTP/1.1", b"RTSP/1.0"), {400, 505}),
    "RTSP/1.1": (GOOD.replace(b"HTTP/1.1", b"RTSP/1.1"), {400, 505}),
    "RTSP/2.0": (GOOD.replace(b"HTTP/1.1", b"RTSP/2.0"), {400, 505}),
    "RTSP after an empty line": (b"\r\n" + GOOD.replace(b"HTTP/1.1", b"RTSP/1.0"), {400, 505}),
    "RTSP on a page": (b"GET / RTSP/1.0\r\nHost: localhost\r\n\r\n", {400, 505}),
    "Host behind the body": (trailed("Host: localhost"), {400}),
    "X-Timeout-Ms behind the body": (trailed("X-Timeout-Ms: 1"), {400}),
    "Authorization behind the body": (trailed("authorization: Bearer x"), {400}),
    "X-Request-Id behind the body": (trailed("X-Request-Id: 1"), {400}),
}

ACCEPTED = {
    "chunked": encoded("chunked"),
    "Chunked in another case": encoded("Chunked"),
    "a trailer that means nothing here": trailed("X-Checksum: 1"),
    "RTSP in a body": post(b'"POST / RTSP/1.0\\r\\n"'),
    "RTSP in a header": post(b"7", "X-Text: / RTSP/1.0"),
    "an empty line first": b"\r\n" + GOOD,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("edge_echo", "--workers", "2") as running:
        yield running


@pytest.mark.parametrize(("sent", "allowed"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(server: Server, sent: bytes, allowed: set[int]) -> None:
    heard = talk(server, sent)
    assert heard.status in allowed, heard.data[:500]
    assert len(heard.statuses) == 1
    assert heard.closed


@pytest.mark.parametrize("sent", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(server: Server, sent: bytes) -> None:
    assert talk(server, sent).statuses == [200]


def test_a_request_line_in_pieces(server: Server) -> None:
    for version, status in ((b"HTTP/1.1", 200), (b"RTSP/1.0", 505)):
        request = GOOD.replace(b"HTTP/1.1", version)
        with Wire(server) as client:
            client.send(*(request[at : at + 1] for at in range(40)), pause=0.002)
            client.send(request[40:])
            assert client.reply().status == status


def test_http_1_0_is_not_told_to_continue(server: Server) -> None:
    request = post(b"7", "Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")
    with Wire(server) as client:
        client.send(request[:-1])
        assert client.is_silent(0.5)
        client.send(request[-1:])
        assert client.reply().status == 200
    with Wire(server) as client:
        client.send(post(b"7", "Expect: 100-continue")[:-1])
        assert client.reply().status == 100


# Half-closed


def slow(seconds: float = 0.5) -> bytes:
    return post(b'{"id": 7, "sleep": %.1f}' % seconds)


@pytest.mark.parametrize("requests", [GOOD, slow(), slow(0.2) * 4, slow().replace(b"HTTP/1.1", b"HTTP/1.0")])
def test_who_only_stops_sending_gets_the_answer(server: Server, requests: bytes) -> None:
    with Wire(server) as client:
        client.send(requests)
        client.socket.shutdown(socket.SHUT_WR)
        count = requests.count(b"POST")
        assert [reply.status for reply in client.replies(count)] == [200] * count
        assert client.wait_closed()
        assert not client.data


def test_an_answer_that_is_large_or_in_parts() -> None:
    with serving("edge_big") as large, Wire(large) as client:
        client.send(post(b'{"size": 9000000}'))
        client.socket.shutdown(socket.SHUT_WR)
        assert len(client.reply().body) == 9_000_000
    with serving("stream") as streaming, Wire(streaming) as client:
        client.send(post(b'{"count": 3, "pause": 0.2}'))
        client.socket.shutdown(socket.SHUT_WR)
        reply = client.reply()
        assert (reply.status, reply.body.count(b"number")) == (200, 3)
        assert client.wait_closed()


def test_half_a_request_is_no_request(server: Server) -> None:
    with Wire(server) as client:
        client.send(slow(), GOOD[:-1])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.reply().status == 200
        assert client.wait_closed()
        assert not client.data
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_who_has_gone_is_noticed(tmp_path: Path) -> None:
    """Closing looks like half-closing at first; nothing runs for who does not listen any more."""
    gate = tmp_path / "gate"
    with serving("edge_echo", "--workers", "1") as server, Wire(server, patience=30) as first:
        first.send(post(b'{"gate": "%s"}' % str(gate).encode()))
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        for how in ("at once", "half first"):
            with Wire(server) as client:
                client.send(post(b'{"say": "not for the gone", "padding": "%s"}' % (b"x" * 10_000)))
                wait_until(lambda: server.metric("panglot_queue_length") == 1)
                if how == "half first":
                    client.socket.shutdown(socket.SHUT_WR)
                    time.sleep(0.2)
                    assert server.metric("panglot_queue_length") == 1
            wait_until(lambda: server.metric("panglot_queue_length") == 0)
        assert server.metric("panglot_dropped_total", reason="disconnected") == 2
        assert server.metric("panglot_request_memory_bytes") < 100
        gate.touch()
        assert first.reply().status == 200
    assert "not for the gone" not in server.log
