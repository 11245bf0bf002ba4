"""Calls that need no token: whoever makes them holds next to nothing, and gives way to callers with a token."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import psutil
import pytest

from panglot.web.http2.frames import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    RST_STREAM,
    frame,
    number,
)
from panglot.web.http2.public_quota import MOST, MOST_OPEN
from panglot.web.limits.quota import RESERVED
from panglot_worker.tensors import protobuf
from support.http2 import INFER, LIVE, STREAM_INFER, Client, block, infer, message
from support.server import Server, serving, wait_until
from support.two_fronts import FRONTS

TOKEN = "secret-token"
MINE = {"authorization": f"Bearer {TOKEN}".encode()}
HEALTH = "/grpc.health.v1.Health/"
WATCH, CHECK = HEALTH + "Watch", HEALTH + "Check"
PUBLIC = (WATCH, CHECK, LIVE)
SERVING = b"\x08\x01"
CONNECTIONS = 6
GAUGES = ("panglot_shared_bodies", "panglot_request_memory_bytes", "panglot_requests_in_progress")
MB = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0", env={"PANGLOT_TOKEN": TOKEN}) as running:
        running.client.headers["authorization"] = f"Bearer {TOKEN}"
        yield running
    assert "Traceback" not in running.log


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server) as client:
        yield client
    wait_until(lambda: not any(map(server.metric, GAUGES)))
    with Client(server) as friend:
        assert friend.call(INFER, infer(), **MINE)[0][b"grpc-status"] == b"0"


def watching(client: Client, body: bytes = b"") -> int:
    """A call that has heard how the server is, and goes on listening."""
    stream = client.open(WATCH)
    client.data(stream, message(body), ended=True)
    assert client.until(lambda came: came.kind == DATA and came.stream == stream).payload == message(SERVING)
    return stream


def status(client: Client, stream: int) -> bytes:
    return client.answer(stream)[0][b"grpc-status"]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_message_beyond_64_kib_is_refused_by_its_first_bytes(client: Client, server: Server, path: str) -> None:
    stream = client.open(path)
    client.data(stream, struct.pack(">BI", 0, 60 * MB) + infer(values=(1.0,) * 1000))
    assert status(client, stream) == b"8"
    assert server.metric("panglot_shared_bodies") == 0
    assert client.is_well()


@pytest.mark.parametrize("path", PUBLIC)
def test_one_message_is_taken(client: Client, path: str) -> None:
    stream = client.open(path)
    client.data(stream, message(b"") * 2)
    assert status(client, stream) == b"12"


def test_a_watch_goes_on_with_one_message_and_no_other(client: Client) -> None:
    stream = watching(client)
    client.data(stream, message())
    assert client.reset_of(stream) == 5, "the stream was closed"


def test_messages_behind_a_watch_take_no_memory(client: Client, server: Server) -> None:
    """Empty ones, which are nothing on the wire and a hundred times that in memory."""
    front = psutil.Process(server.process.pid)
    watching(client)
    before = front.memory_info().rss
    empty = message() * 100_000
    for _ in range(3):
        stream = client.open(WATCH)
        for _ in range(8):
            client.data(stream, empty)
    client.ping()
    assert front.memory_info().rss - before < 30 * MB


@pytest.mark.parametrize("path", [WATCH, CHECK, "/inference.GRPCInferenceService/ModelReady"])
def test_a_message_of_tiny_fields_is_not_walked_through(client: Client, path: str) -> None:
    stream = client.open(path)
    client.data(stream, message(b"\x48\x00" * 32_000), ended=True)
    assert status(client, stream) == b"3"


def test_a_watch_is_told_of_changes_and_of_the_end() -> None:
    with serving("tensors", "--grpc-port", "0") as own, Client(own) as client:
        stream = watching(client, protobuf.text(1, "inference.GRPCInferenceService"))
        unknown = client.open(WATCH)
        client.data(unknown, message(protobuf.text(1, "other")), ended=True)
        assert client.until(lambda came: came.kind == DATA and came.stream == unknown).payload == message(b"\x08\x03")
        short = client.open(WATCH, grpc_timeout=b"300m")
        client.data(short, message(), ended=True)
        assert status(client, short) == b"4"
        with Client(own) as busy:
            running = busy.open(INFER)
            busy.data(running, message(infer(name="sleep", values=(2.0,))), ended=True)
            wait_until(lambda: own.metric("panglot_requests_in_progress") == 1)
            own.process.terminate()
            told = client.until(lambda came: came.kind == DATA and came.stream == stream)
            assert told.payload == message(b"\x08\x02"), "not serving: it stops"
            assert status(busy, running) == b"0"
        client.ends()


def test_calls_without_a_token_are_few_on_one_connection(client: Client) -> None:
    streams = [client.open(path) for _ in range(MOST_OPEN) for path in (CHECK,)]
    beyond = client.open(CHECK)
    assert status(client, beyond) == b"8"
    client.data(streams[0], message(), ended=True)
    assert status(client, streams[0]) == b"0"
    client.data(client.open(CHECK), message(), ended=True)
    mine = client.open(INFER, **MINE)
    client.data(mine, message(infer()), ended=True)
    assert status(client, mine) == b"0", "those with a token are not counted with them"


def test_what_strangers_hold_is_counted_and_little(server: Server, client: Client) -> None:
    """The calls that began first give way; callers with a token are served all the while."""
    assert server.metric("panglot_request_memory_bytes") == 0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in range(6)]
        for other in clients:
            # Each front has its part of the memory: the calls of one client do not fill it.
            for _ in range(MOST_OPEN // int(FRONTS or 1)):
                other.data(other.open(CHECK), message(bytes(65_000))[:40_000])
            other.ping()
            assert 0 < server.metric("panglot_request_memory_bytes") <= MOST
        assert server.metric("panglot_request_memory_bytes") > MOST / 2
        assert client.call(INFER, infer(values=(1.0,) * 100_000), **MINE)[0][b"grpc-status"] == b"0"
        assert client.is_well()
        oldest = clients[0]
        fields, _ = oldest.answer(1)
        assert (fields[b"grpc-status"], b"the oldest of them was ended" in fields[b"grpc-message"]) == (b"8", True)
        assert oldest.is_well()


# Connections


@pytest.fixture(scope="module")
def narrow() -> Iterator[Server]:
    flags = ("--max-connections", str(CONNECTIONS), "--header-timeout", "60", "--body-gap", "60")
    with serving("tensors", "--grpc-port", "0", *flags, env={"PANGLOT_TOKEN": TOKEN}) as running:
        running.client.headers["authorization"] = f"Bearer {TOKEN}"
        yield running
        wait_until(lambda: not any(map(running.metric, GAUGES)))


def half_a_call(client: Client) -> None:
    client.data(client.open(CHECK), message(bytes(1000))[:100])
    client.ping()


def half_a_frame(client: Client) -> None:
    client.ping()
    client.send(frame(HEADERS, END_HEADERS, 1, block())[:20])


@pytest.mark.parametrize("hold", [watching, half_a_call, half_a_frame])
def test_connections_of_strangers_make_room_for_callers_with_a_token(narrow: Server, hold: object) -> None:
    assert callable(hold)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(Client(narrow)) for _ in range(CONNECTIONS)]
        for stranger in strangers:
            hold(stranger)
        if hold is half_a_frame:
            wait_until(lambda: asks(narrow) == b"0")
        friends = [stack.enter_context(Client(narrow)) for _ in range(3)]
        going = [friend.open(STREAM_INFER, **MINE) for friend in friends]
        for friend, stream in zip(friends, going, strict=True):
            friend.data(stream, message(infer()))
            friend.until(lambda came: came.kind == DATA)
        late = stack.enter_context(Client(narrow))
        assert late.call(INFER, infer(), **MINE)[0][b"grpc-status"] == b"0"
        for friend, stream in zip(friends, going, strict=True):
            friend.data(stream, message(infer()), ended=True)
            assert friend.answer(stream)[0][b"grpc-status"] == b"0", "none of those who had a call was sent away"
        assert strangers[0].until(lambda came: came.kind == GOAWAY).code == 0


def asks(server: Server) -> bytes:
    """The status of a call; empty where the connection is turned away."""
    with contextlib.suppress(EOFError, ConnectionError), Client(server) as client:
        return client.call(INFER, infer(), **MINE)[0][b"grpc-status"]
    return b""


def test_connections_beyond_the_limit_that_watch_are_few(narrow: Server) -> None:
    """While callers with a token have all there are, a few strangers may ask; more of them send the first ones away."""
    fronts = int(FRONTS or 1)
    with contextlib.ExitStack() as stack:
        friends = [stack.enter_context(Client(narrow)) for _ in range(CONNECTIONS)]
        for friend in friends:
            friend.data(friend.open(STREAM_INFER, **MINE), message(infer()))
            friend.until(lambda came: came.kind == DATA)
        strangers = []
        for _ in range(RESERVED * fronts + 2):
            strangers.append(stack.enter_context(Client(narrow)))
            watching(strangers[-1])
        for stranger in strangers[:2]:
            assert stranger.until(lambda came: came.kind == GOAWAY).code == ENHANCE_YOUR_CALM
        strangers[-1].ping()


# Floods


def test_large_headers_of_public_calls_are_paid_for(server: Server) -> None:
    """Though each of these calls is answered: their headers take longer to read than the answer to make."""
    field = b"\x00\x01x" + b"\xff\xb9\x16" + b"\x1c" * 3000
    with Client(server) as client:
        with contextlib.suppress(ConnectionError):
            for at in range(1, 4001, 2):
                client.send(frame(HEADERS, END_HEADERS, at, block() + field), frame(DATA, END_STREAM, at, message()))
        assert client.goes_away() == ENHANCE_YOUR_CALM


def test_calls_refused_for_their_token_are_paid_for(server: Server) -> None:
    with Client(server) as client:
        with contextlib.suppress(ConnectionError):
            client.send(*(frame(HEADERS, END_HEADERS | END_STREAM, at, block(INFER)) for at in range(1, 6001, 2)))
        assert client.goes_away() == ENHANCE_YOUR_CALM


def test_a_prober_never_pays(server: Server) -> None:
    with Client(server) as client:
        for _ in range(600):
            assert client.is_well()
            stream = watching(client)
            client.send(frame(RST_STREAM, 0, stream, number(CANCEL)))
