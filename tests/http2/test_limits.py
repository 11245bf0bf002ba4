"""Clients that flood, trickle, or never read: each costs the server little, and for a little while."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator

import psutil
import pytest

from panglot.web.http2.frames import (
    ACK,
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    entry,
    frame,
    number,
)  # fmt: skip
from support.http2 import INFER, STREAM_INFER, Client, block, infer, literal, message
from support.server import Server, serving, wait_until

MB = 1 << 20
HURRIED = ("--header-timeout", "1", "--body-gap", "1", "--write-stall", "2", "--max-body", "3m")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0", *HURRIED) as running:
        yield running
        with Client(running) as client:
            assert client.is_well()
        wait_until(lambda: running.metric("panglot_request_memory_bytes") == 0)
    assert "Traceback" not in running.log


# Floods

RAPID_RESET = b"".join(
    frame(HEADERS, END_HEADERS, number, block(INFER)) + frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL))
    for number in range(1, 6001, 2)
)
LONG = b"\x00\x01x\x7f\xb9\x16" + b"a" * 3000
"""A field of 3 kB, which nobody remembers."""
FEW = range(1, 601, 2)
"""Numbers of calls that are too few for a flood, unless their headers are long."""
FLOODS = {
    "resets": RAPID_RESET,
    "pings": frame(PING, 0, 0, bytes(8)) * 3000,
    "settings": frame(SETTINGS, 0, 0, entry(4, 70_000)) * 3000,
    "priorities": frame(PRIORITY, 0, 1, bytes(5)) * 3000,
    "empty data": frame(HEADERS, END_HEADERS, 1, block(STREAM_INFER)) + frame(DATA, 0, 1) * 3000,
    "settings in one frame": frame(SETTINGS, 0, 0, entry(4, 70_000) * 1000),
    "empty continuations": frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1) * 3000,
    "headers without end": frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1, bytes(8000)) * 5,
    "one large frame of headers": frame(HEADERS, END_HEADERS, 1, block() + bytes(20_000)),
    "acknowledgements of settings": frame(SETTINGS, ACK, 0) * 3000,
    "acknowledgements of pings": frame(PING, ACK, 0, bytes(8)) * 3000,
    "farewells": frame(GOAWAY, 0, 0, bytes(8)) * 3000,
    "frames of no kind": frame(99, 0, 0) * 3000,
    "windows": frame(WINDOW_UPDATE, 0, 0, number(1)) * 3000,
    "windows of a stream that has gone": frame(HEADERS, END_HEADERS, 1, block("/no/Such"))
    + frame(WINDOW_UPDATE, 0, 1, number(1)) * 3000,
    "data of a stream that has gone": frame(HEADERS, END_HEADERS, 1, block("/no/Such"))
    + frame(DATA, 0, 1, b"x") * 3000,
    "a message in single bytes": frame(HEADERS, END_HEADERS, 1, block(INFER))
    + frame(DATA, 0, 1, struct.pack(">BI", 0, 2 * MB))
    + frame(DATA, 0, 1, b"x") * 3000,
    "calls that nothing answers": b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, number, block("/no/Such")) for number in range(1, 6001, 2)
    ),
    "fields without number": frame(HEADERS, END_HEADERS, 1, block() + b"\x82" * 8000),
    "long headers that nothing answers": b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, number, block("/no/Such") + LONG) for number in FEW
    ),
    "long headers that are reset": b"".join(
        frame(HEADERS, END_HEADERS, number, block(INFER) + LONG) + frame(RST_STREAM, 0, number, bytes(4))
        for number in FEW
    ),
    "long headers beyond the limit": b"".join(
        frame(HEADERS, END_HEADERS, number, block(INFER) + (LONG if number > 2048 else b""))
        for number in range(1, 2648, 2)
    ),
    "long headers of a call that was refused": frame(HEADERS, END_HEADERS, 1, block("/no/Such"))
    + frame(HEADERS, END_HEADERS, 1, LONG) * len(FEW),
    "long trailers": b"".join(
        frame(HEADERS, END_HEADERS, number, block(INFER)) + frame(HEADERS, END_HEADERS | END_STREAM, number, LONG)
        for number in FEW
    ),
    "streams that are wrong": b"".join(
        frame(HEADERS, END_HEADERS, number, literal(b"A", b"")) for number in range(1, 6001, 2)
    ),
}


@pytest.mark.parametrize("what", FLOODS)
def test_a_flood_ends_its_connection(server: Server, what: str) -> None:
    with Client(server, greet=False) as client:
        client.send(PREFACE, frame(SETTINGS, 0, 0))
        try:
            client.send(FLOODS[what])
        except ConnectionError:
            return
        assert client.goes_away() == ENHANCE_YOUR_CALM


def test_windows_that_open_by_single_bytes_are_paid_for(server: Server) -> None:
    """Each of them has us send a frame of one byte."""
    with Client(server, settings=entry(4, 0), window=0) as client:
        stream = client.open(INFER)
        client.data(stream, message(infer(values=tuple(range(2000)))), ended=True)
        # The answer is there: its headers need no window. Nothing is in progress before the call has come, too.
        client.until(lambda came: came.kind == HEADERS)
        with contextlib.suppress(ConnectionError):
            client.send(frame(WINDOW_UPDATE, 0, stream, number(1)) * 3000)
        assert client.goes_away() == ENHANCE_YOUR_CALM


def test_calls_pay_for_the_frames_beside_them(server: Server) -> None:
    """A client that resets or pings no more often than it asks is never told to calm down."""
    with Client(server) as client:
        for _ in range(700):
            client.send(frame(PING, 0, 0, bytes(8)), frame(SETTINGS, 0, 0))
            assert client.is_well()


def test_headers_that_unfold_to_too_much_are_refused(server: Server) -> None:
    """A field of 3 kB that is remembered once and named a thousand times."""
    with Client(server) as client:
        field = b"\x40\x01x" + b"\x7f\xb9\x16" + bytes(b"a" * 3000)
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, block() + field + b"\xbe" * 1000))
        fields, _ = client.answer(1)
        assert fields[b"grpc-status"] == b"8"
        client.next = 3
        assert client.is_well()


def test_calls_beyond_the_limit_are_refused() -> None:
    """And can be made again, which the code says. A server that is hurried would end them before all have begun."""
    with serving("tensors", "--grpc-port", "0") as server, Client(server) as client:
        for _ in range(1030):
            client.open(INFER)
        for stream in range(2049, 2060, 2):
            assert client.reset_of(stream) == REFUSED_STREAM
        for stream in range(1, 2049, 2):
            client.data(stream, b"", ended=True)
        assert client.answer(2047)[0][b"grpc-status"] == b"12"
        assert client.is_well()


def test_what_is_only_announced_takes_no_memory(server: Server) -> None:
    front = psutil.Process(server.process.pid)
    with Client(server) as client:
        client.ping()
        before = front.memory_info().rss
        for _ in range(300):
            client.data(client.open(INFER), struct.pack(">BI", 0, 3 * MB - 1) + b"\x0a\x07tensors")
        client.ping()
        assert front.memory_info().rss - before < 100 * MB


# Clients that are slow to send


def test_headers_that_trickle(server: Server) -> None:
    with Client(server) as client:
        client.ping()
        client.send(frame(HEADERS, END_HEADERS, 1, block())[:20])
        assert client.goes_away() == ENHANCE_YOUR_CALM
    with Client(server) as client:
        client.send(frame(HEADERS, 0, 1, block()))
        assert client.goes_away() == ENHANCE_YOUR_CALM


def test_a_preface_that_trickles(server: Server) -> None:
    with Client(server, greet=False) as client:
        client.send(PREFACE[:10])
        client.ends()


@pytest.mark.parametrize("begun", [b"", b"\0\0", message(infer())[:20]])
def test_a_message_that_does_not_come(server: Server, begun: bytes) -> None:
    with Client(server) as client:
        stream = client.open(INFER)
        client.data(stream, begun) if begun else None
        fields, _ = client.answer(stream)
        assert (fields[b"grpc-status"], fields[b"grpc-message"]) == (b"4", b"the message took too long")
        assert client.is_well()


def test_a_stream_may_be_silent_between_messages(server: Server) -> None:
    with Client(server) as client:
        stream = client.open(STREAM_INFER)
        waiting = client.open(INFER)
        assert client.answer(waiting)[0][b"grpc-status"] == b"4", "meanwhile another took too long"
        client.data(stream, message(infer()), ended=True)
        fields, messages = client.answer(stream)
        assert fields[b"grpc-status"] == b"0"
        assert len(messages) == 1


# Clients that are slow to read


def large_call(client: Client) -> int:
    stream = client.open(INFER)
    body = message(infer(values=(1.0,) * 250_000))
    for start in range(0, len(body), MB):
        client.data(stream, body[start : start + MB], ended=start + MB >= len(body))
    return stream


def test_an_answer_whose_window_stays_shut_is_given_up(server: Server) -> None:
    with Client(server, window=0) as client:
        stream = large_call(client)
        assert client.reset_of(stream) == CANCEL
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)
        client.ping()


def test_a_client_that_reads_nothing_is_dropped(server: Server) -> None:
    """And meanwhile nothing more is run for it than fits."""
    before = server.metric("panglot_requests_total", route="grpc ModelInfer", status="200")
    with Client(server, settings=entry(4, 1 << 30)) as client:
        client.sock.settimeout(10)
        try:
            for _ in range(150):
                large_call(client)
        except OSError:
            pass
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)
        # Each answer is 1 MB: the kernel takes some of them, the server keeps 8 MB, and no more are made.
        assert server.metric("panglot_requests_total", route="grpc ModelInfer", status="200") - before < 50
        with Client(server) as other:
            assert other.is_well()


def test_a_slow_reader_has_its_answer_in_the_end(server: Server) -> None:
    with Client(server, window=0) as client:
        stream = large_call(client)
        size, until = 0, time.monotonic() + 60
        while time.monotonic() < until:
            came = client.until(lambda came: came.kind in (DATA, HEADERS, GOAWAY))
            assert came.kind != GOAWAY
            if came.kind == HEADERS and came.ends:
                break
            if came.kind == DATA:
                size += len(came.payload)
                more = number(len(came.payload))
                client.send(frame(8, 0, 0, more), frame(8, 0, stream, more))
        assert size > 1_000_000
        assert client.decoder.decode(came.payload) == [(b"grpc-status", b"0")]
