"""What RFC 9113 does not allow ends a stream or a connection with the code of the RFC, and costs nobody else."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from unittest.mock import ANY

import pytest

from panglot.web.http2.frames import (
    CANCEL,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEADERS,
    LARGEST_WINDOW,
    PADDED,
    PING,
    PREFACE,
    PRIORITISED,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW_UPDATE,
    entry,
    frame,
    header,
    number,
)  # fmt: skip
from support.http2 import INFER, LIVE, STREAM_INFER, Client, block, infer, literal, message
from support.rpc import address
from support.server import Server, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0", "--max-body", "3m") as running:
        yield running
        with Client(running) as client:
            assert client.is_well()
        wait_until(lambda: running.metric("panglot_request_memory_bytes") == 0)
    assert "Traceback" not in running.log


LIVE_HEADERS = frame(HEADERS, END_HEADERS, 1, block())
HUFFMAN_END = b"\xff\xff\xff\xff"

ENDS_THE_CONNECTION: dict[str, tuple[bytes, int]] = {
    "a first frame that is not SETTINGS": (frame(PING, 0, 0, bytes(8)), PROTOCOL_ERROR),
    "a frame too large": (header((1 << 20) + 1, DATA, 0, 1), FRAME_SIZE_ERROR),
    "an even stream": (frame(HEADERS, END_HEADERS, 2, block()), PROTOCOL_ERROR),
    "headers on no stream": (frame(HEADERS, END_HEADERS, 0, block()), PROTOCOL_ERROR),
    "data on no stream": (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
    "data on an idle stream": (frame(DATA, 0, 7, b"x"), PROTOCOL_ERROR),
    "a window of an idle stream": (frame(WINDOW_UPDATE, 0, 7, number(1)), PROTOCOL_ERROR),
    "a reset of an idle stream": (frame(RST_STREAM, 0, 7, number(CANCEL)), PROTOCOL_ERROR),
    "a reset of no stream": (frame(RST_STREAM, 0, 0, number(CANCEL)), PROTOCOL_ERROR),
    "a reset of the wrong size": (LIVE_HEADERS + frame(RST_STREAM, 0, 1, b"x"), FRAME_SIZE_ERROR),
    "a ping of the wrong size": (frame(PING, 0, 0, b"1234567"), FRAME_SIZE_ERROR),
    "a ping on a stream": (frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "settings on a stream": (frame(SETTINGS, 0, 1), PROTOCOL_ERROR),
    "settings of the wrong size": (frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
    "an acknowledgement with settings": (frame(SETTINGS, 1, 0, bytes(6)), FRAME_SIZE_ERROR),
    "an initial window too large": (frame(SETTINGS, 0, 0, entry(4, 1 << 31)), FLOW_CONTROL_ERROR),
    "a largest frame too small": (frame(SETTINGS, 0, 0, entry(5, 1000)), PROTOCOL_ERROR),
    "a largest frame too large": (frame(SETTINGS, 0, 0, entry(5, 1 << 24)), PROTOCOL_ERROR),
    "pushes set to 2": (frame(SETTINGS, 0, 0, entry(2, 2)), PROTOCOL_ERROR),
    "a window that grows by nothing": (frame(WINDOW_UPDATE, 0, 0, number(0)), PROTOCOL_ERROR),
    "a window that overflows": (frame(WINDOW_UPDATE, 0, 0, number(LARGEST_WINDOW)), FLOW_CONTROL_ERROR),
    "a window update of the wrong size": (frame(WINDOW_UPDATE, 0, 0, b"x"), FRAME_SIZE_ERROR),
    "a push": (frame(PUSH_PROMISE, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a continuation of nothing": (frame(CONTINUATION, END_HEADERS, 1, b""), PROTOCOL_ERROR),
    "interrupted headers": (frame(HEADERS, 0, 1, block()) + frame(PING, 0, 0, bytes(8)), PROTOCOL_ERROR),
    "headers continued elsewhere": (frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 4, 3, b""), PROTOCOL_ERROR),
    "padding longer than data": (LIVE_HEADERS + frame(DATA, PADDED, 1, b"\x05abc"), PROTOCOL_ERROR),
    "padding longer than headers": (frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + block()[:9]), PROTOCOL_ERROR),
    "headers without their padding": (frame(HEADERS, END_HEADERS | PADDED, 1), PROTOCOL_ERROR),
    "headers without their priority": (frame(HEADERS, END_HEADERS | PRIORITISED, 1, b"abc"), PROTOCOL_ERROR),
    "data without its padding": (LIVE_HEADERS + frame(DATA, PADDED, 1), FRAME_SIZE_ERROR),
    "a priority of no stream": (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR),
    "an index out of the table": (frame(HEADERS, END_HEADERS, 1, b"\xff\x50"), COMPRESSION_ERROR),
    "an index of nothing": (frame(HEADERS, END_HEADERS, 1, b"\x80"), COMPRESSION_ERROR),
    "an index without end": (frame(HEADERS, END_HEADERS, 1, b"\xff" * 40), COMPRESSION_ERROR),
    "a text cut off": (frame(HEADERS, END_HEADERS, 1, b"\0\x7fabc"), COMPRESSION_ERROR),
    "a Huffman code with its end inside": (
        frame(HEADERS, END_HEADERS, 1, b"\0\x84" + HUFFMAN_END + b"\0"), COMPRESSION_ERROR,
    ),
    "a Huffman code padded with zeros": (frame(HEADERS, END_HEADERS, 1, b"\0\x81\x18\x01x"), COMPRESSION_ERROR),
    "a table too large": (frame(HEADERS, END_HEADERS, 1, b"\x3f\xe2\x1f" + block()), COMPRESSION_ERROR),
    "a table resized late": (frame(HEADERS, END_HEADERS, 1, block() + b"\x20"), COMPRESSION_ERROR),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS_THE_CONNECTION)
def test_a_connection_ends(server: Server, what: str) -> None:
    sent, code = ENDS_THE_CONNECTION[what]
    with Client(server, greet=False) as client:
        client.send(PREFACE, b"" if "first frame" in what else frame(SETTINGS, 0, 0), sent)
        assert client.goes_away() == code


def opened(**more: bytes) -> bytes:
    return frame(HEADERS, END_HEADERS, 1, block(**more))


ENDS_A_STREAM: dict[str, tuple[bytes, int]] = {
    "a name in capitals": (opened(X_Shout=b"1"), PROTOCOL_ERROR),
    "a name that is none": (frame(HEADERS, END_HEADERS, 1, block() + literal(b"a b", b"")), PROTOCOL_ERROR),
    "a value with a line break": (opened(x=b"a\r\nb: c"), PROTOCOL_ERROR),
    "a value with a space at its end": (opened(x=b"a "), PROTOCOL_ERROR),
    "a header of HTTP/1.1": (opened(connection=b"close"), PROTOCOL_ERROR),
    "another te": (opened(te=b"gzip"), PROTOCOL_ERROR),
    "no path": (frame(HEADERS, END_HEADERS, 1, literal(b":method", b"POST")), PROTOCOL_ERROR),
    "a path twice": (frame(HEADERS, END_HEADERS, 1, literal(b":path", b"/") + block()), PROTOCOL_ERROR),
    "a path at the end": (frame(HEADERS, END_HEADERS, 1, literal(b"a", b"") + block()), PROTOCOL_ERROR),
    "an unknown pseudo-header": (frame(HEADERS, END_HEADERS, 1, literal(b":x", b"") + block()), PROTOCOL_ERROR),
    "headers twice": (LIVE_HEADERS + LIVE_HEADERS, PROTOCOL_ERROR),
    "trailers with a pseudo-header": (
        LIVE_HEADERS + frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b":path", b"/")), PROTOCOL_ERROR,
    ),
    "a window that grows by nothing": (LIVE_HEADERS + frame(WINDOW_UPDATE, 0, 1, number(0)), PROTOCOL_ERROR),
    "a window that overflows": (
        LIVE_HEADERS + frame(WINDOW_UPDATE, 0, 1, number(LARGEST_WINDOW)), FLOW_CONTROL_ERROR,
    ),
    "a priority of the wrong size": (LIVE_HEADERS + frame(PRIORITY, 0, 1, b"x"), FRAME_SIZE_ERROR),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS_A_STREAM)
def test_a_stream_ends_and_its_connection_goes_on(server: Server, what: str) -> None:
    sent, code = ENDS_A_STREAM[what]
    with Client(server) as client:
        client.send(sent)
        assert client.reset_of(1) == code
        client.next = 3
        assert client.is_well()


def test_frames_that_mean_nothing_here_are_ignored(server: Server) -> None:
    with Client(server, settings=entry(99, 7) + entry(3, 100) + entry(1, 0)) as client:
        client.send(frame(200, 255, 1, b"what"), frame(PRIORITY, 0, 5, bytes(5)), frame(SETTINGS, 1, 0))
        client.send(frame(200, 0, 0, bytes(1 << 18)), frame(GOAWAY, 0, 0, bytes(8) + b"so long"))
        assert client.is_well()
        with_priority = frame(HEADERS, END_HEADERS | PRIORITISED | PADDED, 3, b"\x03" + bytes(5) + block() + bytes(3))
        client.send(with_priority, frame(DATA, END_STREAM | PADDED, 3, b"\x02" + message() + bytes(2)))
        assert client.answer(3)[0][b"grpc-status"] == b"0"


def test_a_call_that_is_cut_into_single_bytes_is_the_same(server: Server) -> None:
    with Client(server, greet=False) as client:
        head = block(INFER)
        whole = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, head[:7])
        whole += frame(CONTINUATION, 0, 1, head[7:40]) + frame(CONTINUATION, END_HEADERS, 1, head[40:])
        body = message(infer())
        whole += frame(DATA, 0, 1, body[:3]) + frame(DATA, PADDED, 1, b"\x04" + body[3:9] + bytes(4))
        whole += frame(DATA, 0, 1, body[9:]) + frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b"x", b"y"))
        for at in range(len(whole)):
            client.send(whole[at : at + 1])
        fields, (answer,) = client.answer(1)
        assert fields[b"grpc-status"] == b"0"
        assert answer.endswith(struct.pack("<f", 4.0))


def test_data_after_the_end_of_a_stream(server: Server) -> None:
    with Client(server) as client:
        stream = client.open(INFER)
        # In one go: when the call has been answered, the same data ends the connection.
        asked = message(infer(name="sleep", values=(0.5,)))
        client.send(frame(DATA, END_STREAM, stream, asked), frame(DATA, 0, stream, b"more"))
        assert client.reset_of(stream) == STREAM_CLOSED
        assert client.is_well()
        client.data(client.next - 2, b"more")
        assert client.goes_away() == STREAM_CLOSED


def test_headers_on_a_stream_that_is_over(server: Server) -> None:
    with Client(server) as client:
        assert client.is_well()
        client.send(frame(HEADERS, END_HEADERS, 1, block()))
        assert client.goes_away() == STREAM_CLOSED


def test_what_a_client_sends_before_it_knows_of_a_refusal_is_ignored(server: Server) -> None:
    """A server that has answered early says so by RST_STREAM, without an error."""
    with Client(server) as client:
        stream = client.open("/no/Such")
        client.data(stream, message(b"x" * 1000))
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, literal(b"x", b"y")))
        fields, _ = client.answer(stream)
        assert fields[b"grpc-status"] == b"12"
        assert client.reset_of(stream) == 0
        assert client.is_well()


def test_more_than_the_window(server: Server) -> None:
    """Nothing more is read of a stream whose inferences run: its client has no right to send on."""
    with Client(server) as client:
        stream = client.open(STREAM_INFER)
        client.data(stream, message(infer(name="sleep", values=(0.2,))) * 70)
        for _ in range(5):
            client.data(stream, message(bytes(1 << 20))[: 1 << 20])
        assert client.reset_of(stream) == FLOW_CONTROL_ERROR
        assert client.is_well()


def test_another_protocol_is_told_where_it_is(server: Server) -> None:
    port = int(address(server).rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = b""
        while more := client.recv(4096):
            said += more
    assert said.startswith(b"HTTP/1.1 505 ")
    assert b"this port speaks gRPC" in said


@pytest.mark.parametrize(
    ("head", "status"),
    [({"method": b"GET"}, b"405"), ({"content_type": b"text/html"}, b"415"), ({"content_type": b""}, b"415")],
)
def test_requests_that_are_no_calls_have_a_status_of_http(
    server: Server, head: dict[str, bytes], status: bytes
) -> None:
    with Client(server) as client:
        number = client.open(LIVE, ended=True, **head)
        assert client.answer(number)[0][b":status"] == status
        assert client.is_well()


def check_windows(server: Server, act: Callable[[Client, int], None]) -> None:
    with Client(server, settings=entry(4, 10), window=0) as client:
        number = client.open(INFER)
        client.data(number, message(infer(values=tuple(range(64)))), ended=True)
        first = client.until(lambda came: came.kind == DATA)
        assert len(first.payload) == 10
        client.ping()
        act(client, number)
        size = 10
        while True:
            came = client.until(lambda came: came.kind in (DATA, HEADERS))
            if came.kind == HEADERS:
                break
            size += len(came.payload)
        assert size > 256
        assert client.decoder.decode(came.payload) == [(b"grpc-status", b"0")]


def test_an_answer_waits_for_its_window(server: Server) -> None:
    check_windows(server, lambda client, stream: client.send(frame(WINDOW_UPDATE, 0, stream, number(1000))))


def test_a_window_grows_with_the_settings(server: Server) -> None:
    check_windows(server, lambda client, stream: client.send(frame(SETTINGS, 0, 0, entry(4, 1000))))


def test_settings_are_acknowledged_before_anything_is_sent_by_them(server: Server) -> None:
    """Until then a client that checks its windows takes the data for a fault."""
    with Client(server, settings=entry(4, 10), window=0) as client:
        stream = client.open(INFER)
        client.data(stream, message(infer(values=tuple(range(64)))), ended=True)
        client.until(lambda came: came.kind == DATA)
        client.ping()
        for size in (20, 30):
            client.send(frame(SETTINGS, 0, 0, entry(4, 1) + entry(4, size)))
            assert [client.read() for _ in range(2)] == [(SETTINGS, 1, 0, b""), (DATA, 0, stream, ANY)]


def test_a_window_may_become_negative(server: Server) -> None:
    def shrink(client: Client, stream: int) -> None:
        client.send(frame(SETTINGS, 0, 0, entry(4, 0)), frame(WINDOW_UPDATE, 0, stream, number(5)))
        client.ping()
        client.send(frame(WINDOW_UPDATE, 0, stream, number(2000)))

    check_windows(server, shrink)


def test_settings_that_make_a_window_overflow(server: Server) -> None:
    with Client(server, window=0) as client:
        stream = client.open(INFER)
        client.send(frame(WINDOW_UPDATE, 0, stream, number(LARGEST_WINDOW - 65535)))
        client.send(frame(SETTINGS, 0, 0, entry(4, 65536)))
        assert client.goes_away() == FLOW_CONTROL_ERROR
