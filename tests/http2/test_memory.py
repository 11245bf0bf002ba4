"""What messages take is given back, however their calls end: shared memory, counted bytes, calls in progress."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator

import pytest

from panglot.web.http2.frames import CANCEL, RST_STREAM, entry, frame, number
from panglot_worker.tensors import protobuf
from support.http2 import INFER, STREAM_INFER, Client, infer, message
from support.rpc import REFLECTION
from support.server import Server, serving, wait_until

WATCH, CHECK = "/grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/Check"
MB = 1 << 20
QUEUE = 80
LARGE = infer(values=(1.0,) * 50_000)
"""A message that is read into shared memory, and arrives in several frames."""
GAUGES = ("panglot_shared_bodies", "panglot_request_memory_bytes", "panglot_requests_in_progress")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ("--max-body", "3m", "--queue", str(QUEUE), "--body-gap", "3")
    with serving("tensors", "--grpc-port", "0", *flags) as running:
        yield running
    assert "Traceback" not in running.log


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Whatever a test does with it, nothing is left when it has gone."""
    with Client(server) as client:
        yield client
    wait_until(lambda: not any(map(server.metric, GAUGES)), message=lambda: left(server))
    with Client(server) as other:
        assert other.call(INFER, LARGE)[0][b"grpc-status"] == b"0"
    wait_until(lambda: not any(map(server.metric, GAUGES)), message=lambda: left(server))


def left(server: Server) -> str:
    return str({name: server.metric(name) for name in GAUGES})


def send_large(client: Client, stream: int, body: bytes = LARGE, ended: bool = True, packed: int = 0) -> None:
    """A message in frames of 16 KiB."""
    data = message(body, packed)
    for start in range(0, len(data), 16384):
        client.data(stream, data[start : start + 16384], ended=ended and start + 16384 >= len(data))


def fill_the_queue(client: Client, server: Server) -> None:
    """For as long as the first of them sleeps: then there is a place again."""
    before = server.metric("panglot_dropped_total", reason="queue_full")
    for _ in range(QUEUE + 40):
        client.data(client.open(INFER), message(infer(name="sleep", values=(6.0,))), ended=True)
    wait_until(lambda: server.metric("panglot_dropped_total", reason="queue_full") > before)


def test_calls_that_a_full_queue_refuses(client: Client, server: Server) -> None:
    fill_the_queue(client, server)
    for _ in range(40):
        stream = client.open(INFER)
        send_large(client, stream)
        assert client.answer(stream)[0][b"grpc-status"] == b"14"
    assert server.metric("panglot_shared_bodies") == 0


def test_inferences_of_a_stream_that_a_full_queue_refuses(client: Client, server: Server) -> None:
    fill_the_queue(client, server)
    stream = client.open(STREAM_INFER)
    for at in range(20):
        send_large(client, stream, ended=at == 19)
    fields, messages = client.answer(stream)
    assert (fields[b"grpc-status"], len(messages)) == (b"0", 20)
    assert all(b"too many requests" in one for one in messages)
    assert server.metric("panglot_shared_bodies") == 0


@pytest.mark.parametrize("second", [message(), message(LARGE)[:2], message(LARGE)], ids=["empty", "begun", "large"])
def test_a_second_message_to_a_unary_call(client: Client, server: Server, second: bytes) -> None:
    for _ in range(3):
        stream = client.open(INFER)
        send_large(client, stream, ended=False)
        client.data(stream, second)
        assert client.answer(stream)[0][b"grpc-status"] == b"12"
        client.data(stream, message(LARGE), ended=True)


@pytest.mark.parametrize("how", ["reset", "gone"])
def test_a_stream_that_ends_while_its_messages_wait(client: Client, server: Server, how: str) -> None:
    """More than are begun at once, more than are read ahead, and one that has not come whole."""
    stream = client.open(STREAM_INFER)
    for _ in range(70):
        client.data(stream, message(infer(name="sleep", values=(2.0,))))
    send_large(client, stream, ended=False)
    send_large(client, stream, ended=False)
    client.data(stream, message(infer()) * 200 + message(LARGE)[:1000])
    client.ping()
    assert server.metric("panglot_requests_in_progress") >= 60
    if how == "reset":
        client.send(frame(RST_STREAM, 0, stream, number(CANCEL)))
        wait_until(lambda: not any(map(server.metric, GAUGES)), message=lambda: left(server))


def test_a_stream_whose_deadline_passes_while_its_messages_wait(client: Client, server: Server) -> None:
    stream = client.open(STREAM_INFER, grpc_timeout=b"300m")
    for _ in range(70):
        client.data(stream, message(infer(name="sleep", values=(2.0,))))
    send_large(client, stream, ended=False)
    assert client.answer(stream)[0][b"grpc-status"] == b"4"


@pytest.mark.parametrize("how", ["reset", "slow", "gone", "late"])
def test_a_large_message_that_never_ends(client: Client, server: Server, how: str) -> None:
    stream = client.open(INFER)
    client.data(stream, message(LARGE)[:40_000])
    client.ping()
    assert server.metric("panglot_shared_bodies") == 1
    if how == "reset":
        client.send(frame(RST_STREAM, 0, stream, number(CANCEL)))
    elif how == "slow":
        assert client.answer(stream)[0][b"grpc-status"] == b"4"
    elif how == "late":
        # It has its end, and no room any more: the call is over all the same.
        client.data(stream, message(LARGE)[40_000:-1], ended=True)
        assert client.answer(stream)[0][b"grpc-status"] == b"12"


@pytest.mark.parametrize("path", [WATCH, CHECK, REFLECTION])
def test_large_messages_to_what_takes_small_ones(client: Client, server: Server, path: str) -> None:
    """They begin as an inference does, and find no shared memory all the same."""
    for _ in range(3):
        stream = client.open(path)
        client.data(stream, message(LARGE)[:16384])
        assert client.answer(stream)[0][b"grpc-status"] == b"8"
        assert server.metric("panglot_shared_bodies") == 0


def test_small_messages_to_what_takes_small_ones(client: Client) -> None:
    for path in (WATCH, CHECK, REFLECTION):
        for _ in range(3):
            stream = client.open(path)
            client.data(stream, message(protobuf.text(1, "tensors") + protobuf.text(3, "x" * 60_000))[:50_000])
            client.ping()
            client.send(frame(RST_STREAM, 0, stream, number(CANCEL)))


def test_messages_that_are_refused_once_they_have_come(client: Client) -> None:
    """For a model that is not there, for what they are, and because they are compressed wrongly."""
    version = protobuf.text(1, "tensors") + protobuf.message(5, bytes(20_000)) + protobuf.text(2, "7")
    version += protobuf.message(7, bytes(200_000))
    broken = protobuf.text(1, "tensors") + protobuf.message(9, bytes(100_000)) + b"\x0f" + bytes(100_000)
    cut = gzip.compress(LARGE + bytes(range(256)) * 400)[:-100]
    for body, more, status in ((version, {}, b"5"), (broken, {}, b"3"), (cut, {"grpc_encoding": b"gzip"}, b"3")):
        for path in (INFER, STREAM_INFER):
            stream = client.open(path, **more)
            send_large(client, stream, body, packed=bool(more))
            fields, messages = client.answer(stream)
            assert fields[b"grpc-status"] == (status if path == INFER else b"0")
            assert len(messages) == (path == STREAM_INFER)


def test_many_empty_messages_are_not_many_objects(client: Client, server: Server) -> None:
    """A million of them wait behind inferences: what they take is about what was sent."""
    stream = client.open(STREAM_INFER)
    client.data(stream, message(infer(name="sleep", values=(2.0,))) * 70)
    sent = message() * 600_000
    for start in range(0, len(sent), MB):
        client.data(stream, sent[start : start + MB])
    client.ping()
    assert len(sent) <= server.metric("panglot_request_memory_bytes") < 2 * len(sent)


def test_answers_that_are_never_read(server: Server, client: Client) -> None:
    with Client(server, settings=entry(4, 100), window=0) as other:
        streams = [other.open(INFER) for _ in range(5)]
        for stream in streams:
            send_large(other, stream)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        other.send(*(frame(RST_STREAM, 0, stream, number(CANCEL)) for stream in streams[:3]))
        other.ping()


def test_calls_that_are_refused_before_their_messages_come(client: Client) -> None:
    for path in ("/no/Such", INFER):
        for _ in range(5):
            stream = client.open(path, grpc_timeout=b"no time")
            send_large(client, stream)
            client.answer(stream)
    stream = client.open(INFER)
    client.data(stream, struct.pack(">BI", 0, 100 * MB) + LARGE)
    assert client.answer(stream)[0][b"grpc-status"] == b"8"
