"""Calls of gRPC over our own HTTP/2, frame by frame: encodings, deadlines, counts of messages, how a server leaves."""

from __future__ import annotations

import contextlib
import gzip
import signal
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from panglot.web.http2.frames import (
    ACK,
    DATA,
    EVERY_STREAM,
    GOAWAY,
    PING,
    REFUSED_STREAM,
    RST_STREAM,
    frame,
)  # fmt: skip
from panglot_worker.tensors import protobuf
from support.http2 import INFER, LIVE, STREAM_INFER, Client, infer, message
from support.rpc import REFLECTION, SERVICE
from support.server import ROOT, Server, serving, wait_until

OK, INVALID, DEADLINE, NOT_FOUND, EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = (
    b"0", b"3", b"4", b"5", b"8", b"12", b"13", b"14",
)  # fmt: skip
FOUR = struct.pack("<f", 4.0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0", "--max-body", "3m", "--max-output", "3m") as running:
        yield running
        wait_until(lambda: running.metric("panglot_request_memory_bytes") == 0)
    assert "the server itself" not in running.log


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server) as client:
        yield client
        assert client.is_well()


def asked(client: Client, path: str, data: bytes, **more: bytes) -> tuple[bytes, str, list[bytes]]:
    """Status, sentence and messages of a call with this data."""
    stream = client.open(path, **more)
    client.data(stream, data, ended=True)
    fields, messages = client.answer(stream)
    return fields[b"grpc-status"], unquote_to_bytes(fields.get(b"grpc-message", b"")).decode(), messages


def test_what_an_answer_says(client: Client) -> None:
    fields, (answer,) = client.call(INFER, infer())
    assert answer.endswith(FOUR)
    assert fields == {
        b":status": b"200", b"content-type": b"application/grpc", b"grpc-accept-encoding": b"identity, deflate, gzip",
        b"grpc-status": b"0",
    }  # fmt: skip


# Compression

CODINGS = {b"gzip": gzip.compress, b"deflate": zlib.compress}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("values", [(4.0,), (1.0,) * 200_000 + (4.0,)])
def test_compressed_messages_are_read(client: Client, coding: bytes, values: tuple[float, ...]) -> None:
    packed = CODINGS[coding](infer(values=values))
    status, sentence, messages = asked(client, INFER, message(packed, 1), grpc_encoding=coding)
    assert (status, sentence) == (OK, "")
    assert messages[0].endswith(FOUR)
    status, _, messages = asked(client, INFER, message(infer()), grpc_encoding=coding)
    assert (status, len(messages)) == (OK, 1), "a message may be plain all the same"
    status, _, messages = asked(client, STREAM_INFER, message(packed, 1) + message(infer()), grpc_encoding=coding)
    assert (status, [part[-4:] for part in messages]) == (OK, [FOUR, FOUR])
    assert asked(client, LIVE, message(CODINGS[coding](b""), 1), grpc_encoding=coding)[0] == OK
    listed = message(CODINGS[coding](protobuf.message(7, b"")), 1)
    assert SERVICE.encode() in asked(client, REFLECTION, listed, grpc_encoding=coding)[2][0]


def test_compression_that_is_wrong(client: Client) -> None:
    assert asked(client, INFER, message(infer(), 1))[0] == INTERNAL, "nobody said how"
    status, sentence, _ = asked(client, INFER, message(b""), grpc_encoding=b"snappy")
    assert (status, sentence) == (
        UNIMPLEMENTED, "grpc-encoding 'snappy' is not read here; gzip, deflate and identity are",
    )  # fmt: skip
    assert asked(client, INFER, message(b"no gzip", 1), grpc_encoding=b"gzip")[0] == INTERNAL
    assert asked(client, LIVE, message(b"no gzip", 1), grpc_encoding=b"gzip")[0] == INTERNAL
    cut = gzip.compress(infer(values=tuple(range(1000))))[:-30]
    assert asked(client, INFER, message(cut, 1), grpc_encoding=b"gzip")[0] == INVALID
    assert asked(client, INFER, message(infer(), 2), grpc_encoding=b"gzip")[0] == INTERNAL


def test_a_failure_in_a_stream_names_its_request_though_that_was_compressed(client: Client) -> None:
    packed = gzip.compress(infer(model="other") + protobuf.text(3, "mine"))
    broken = message(b"no gzip", 1)
    status, _, messages = asked(client, STREAM_INFER, message(packed, 1) + broken, grpc_encoding=b"gzip")
    assert (status, len(messages)) == (OK, 2)
    assert any(b"there is no model 'other'" in part and b"mine" in part for part in messages)
    assert any(b"not gzip" in part for part in messages)


def test_a_message_that_unfolds_to_too_much(client: Client) -> None:
    bomb = gzip.compress(infer(values=(0.0,) * (4 << 20)))
    assert asked(client, INFER, message(bomb, 1), grpc_encoding=b"gzip")[0] == EXHAUSTED
    assert asked(client, LIVE, message(gzip.compress(bytes(1 << 26)), 1), grpc_encoding=b"gzip")[0] == EXHAUSTED


# Messages


@pytest.mark.parametrize("data", [b"", message(infer()) * 2, message(infer())[:-1], b"\0\0"])
def test_a_unary_call_has_one_message(client: Client, data: bytes) -> None:
    assert asked(client, INFER, data)[:2] == (UNIMPLEMENTED, "this method takes one message")


def test_a_message_too_large_is_refused_by_its_first_bytes(client: Client) -> None:
    stream = client.open(INFER)
    client.data(stream, struct.pack(">BI", 0, 200 << 20))
    fields, _ = client.answer(stream)
    assert (fields[b"grpc-status"], fields[b"grpc-message"]) == (
        EXHAUSTED, b"the message is larger than max_body, 3145728 bytes",
    )  # fmt: skip
    assert client.reset_of(stream) == 0
    assert asked(client, LIVE, message(bytes(70_000)))[0] == EXHAUSTED


def test_a_model_that_is_not_there_is_refused_before_its_tensors_have_come(client: Client) -> None:
    body = infer(model="other", values=(1.0,) * 100_000)
    stream = client.open(INFER)
    client.data(stream, message(body)[:1000])
    fields, _ = client.answer(stream)
    assert (fields[b"grpc-status"], fields[b"grpc-message"]) == (
        NOT_FOUND, b"there is no model 'other'; there is tensors",
    )  # fmt: skip


def test_a_large_inference_for_no_model_costs_its_stream_nothing(client: Client) -> None:
    stream = client.open(STREAM_INFER)
    wrong = message(infer(model="other", values=(1.0,) * 100_000))
    client.data(stream, wrong[:1000])
    client.data(stream, wrong[1000:] + message(infer()), ended=True)
    fields, messages = client.answer(stream)
    assert (fields[b"grpc-status"], len(messages)) == (OK, 2)
    assert any(b"there is no model 'other'" in part for part in messages)
    assert any(part.endswith(FOUR) for part in messages)


def sent_in_pieces(client: Client, body: bytes) -> tuple[bytes, str, list[bytes]]:
    """Status, sentence and messages of an inference whose message comes in several frames."""
    data = message(body)
    stream = client.open(INFER)
    for start in range(0, len(data), 50_000):
        client.data(stream, data[start : start + 50_000], ended=start + 50_000 >= len(data))
    fields, messages = client.answer(stream)
    return fields[b"grpc-status"], unquote_to_bytes(fields.get(b"grpc-message", b"")).decode(), messages


def test_a_name_behind_the_tensors_is_read_within_the_first_64_kib(client: Client) -> None:
    name = protobuf.text(1, "tensors")
    for ask in (lambda body: asked(client, INFER, message(body)), lambda body: sent_in_pieces(client, body)):
        status, _, messages = ask(infer(values=(1.0,) * 16_000 + (4.0,))[len(name) :] + name)
        assert status == OK
        assert messages[0].endswith(FOUR)
        status, sentence, _ = ask(infer(values=(1.0,) * 100_000)[len(name) :] + name)
        assert (status, sentence) == (
            INVALID, "model_name is not in the first 65536 bytes of the message: send it first",
        )  # fmt: skip


@pytest.mark.parametrize("field", [b"\x22\x00", b"\x48\x00"], ids=["parameters", "unknown"])
def test_the_name_is_not_looked_for_in_a_large_message_of_tiny_fields(
    client: Client, server: Server, field: bytes
) -> None:
    """Neither before it nor behind it: who walked through all of these would keep everybody waiting."""
    before = server.metric("panglot_requests_total", route="grpc ModelInfer")
    # The second is within the first 64 KiB: they may have some thousands of fields.
    for count in (1_400_000, 5_000):
        assert sent_in_pieces(client, field * count + infer())[0] == INVALID
    assert server.metric("panglot_requests_total", route="grpc ModelInfer") == before, "its worker never saw it"


def test_sentences_are_percent_encoded(client: Client) -> None:
    status, sentence, _ = asked(client, INFER, message(infer(model="100 % männlich\n")))
    assert status == NOT_FOUND
    assert "100 % männlich" in sentence


def test_who_asks_is_in_the_log(client: Client, server: Server) -> None:
    assert asked(client, INFER, message(infer(name="fail")), x_request_id=b"mine-77")[0] == INTERNAL
    server.wait_log("request mine-77: the script failed")


# Deadlines and cancellation


@pytest.mark.parametrize("path", [INFER, STREAM_INFER])
def test_a_deadline_is_kept(client: Client, path: str) -> None:
    data = message(infer(name="sleep", values=(20.0 if path == STREAM_INFER else 1.0,)))
    assert asked(client, path, data, grpc_timeout=b"50m")[0] == DEADLINE


@pytest.mark.parametrize("given", [b"", b"5", b"5x", b"-5S", b"123456789S", b"S"])
def test_a_deadline_that_is_none_is_refused(client: Client, given: bytes) -> None:
    assert asked(client, LIVE, message(), grpc_timeout=given)[0] == INVALID


@pytest.mark.parametrize("given", [b"1H", b"2M", b"99999999S", b"60000m", b"99999999u"])
def test_deadlines_have_units(client: Client, given: bytes) -> None:
    assert asked(client, INFER, message(infer()), grpc_timeout=given)[0] == OK


def test_a_call_that_is_reset_is_given_up() -> None:
    """On a server of its own, whose worker sleeps on: whoever asked it next would wait for half a minute."""
    with serving("tensors", "--grpc-port", "0", "--drain", "0") as server, Client(server) as client:
        for _ in range(3):
            stream = client.open(INFER)
            client.data(stream, message(infer(name="sleep", values=(30.0,))), ended=True)
            wait_until(lambda: server.metric("panglot_requests_in_progress") > 0)
            client.send(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
            wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        assert client.is_well()


# Leaving


def test_a_server_that_stops_says_so_twice() -> None:
    """First that it stops; then, once the client must have heard that, which call is the last it answers."""
    with serving("tensors", "--grpc-port", "0") as server, Client(server) as client, Client(server) as other:
        assert client.is_well()
        waiting = other.open(STREAM_INFER)
        going = client.open(INFER)
        client.data(going, message(infer(name="sleep", values=(1.0,))), ended=True)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        server.process.send_signal(signal.SIGTERM)
        first = client.until(lambda came: came.kind == GOAWAY)
        assert (int.from_bytes(first.payload[:4], "big"), first.code) == (EVERY_STREAM, 0)
        asks = client.until(lambda came: came.kind == PING)
        late = client.open(LIVE, ended=False)
        client.data(late, message(), ended=True)
        client.send(frame(PING, ACK, 0, asks.payload))
        second, refused, answered = None, client.open(LIVE), b""
        while not (second and answered):
            came = client.read()
            if came.kind == GOAWAY:
                second = came
            elif came.kind == RST_STREAM and came.stream == refused:
                assert came.code == REFUSED_STREAM
            elif came.kind == DATA and came.stream == going:
                answered = came.payload
        assert int.from_bytes(second.payload[:4], "big") == late
        assert answered.endswith(struct.pack("<f", 1.0))
        assert other.answer(waiting)[0][b"grpc-status"] == UNAVAILABLE
        client.ends()
        assert server.process.wait(20) == 0


def test_connections_that_the_kernel_has_taken_in_are_answered_when_the_server_stops() -> None:
    with serving("tensors", "--grpc-port", "0") as server, contextlib.ExitStack() as clients:
        assert clients.enter_context(Client(server)).is_well()
        server.process.send_signal(signal.SIGSTOP)
        calls = []
        for _ in range(20):
            client = clients.enter_context(Client(server))
            stream = client.open(INFER)
            client.data(stream, message(infer()), ended=True)
            calls.append((client, stream))
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        for client, stream in calls:
            fields, messages = client.answer(stream)
            assert fields[b"grpc-status"] == b"0"
            assert messages[0].endswith(FOUR)


def test_a_server_without_grpcio_speaks_grpc(tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("raise ImportError('it is not installed')")
    path = f"{tmp_path}:{ROOT / 'src'}"
    with serving("tensors", "--grpc-port", "0", env={"PYTHONPATH": path}) as server, Client(server) as client:
        assert client.call(INFER, infer())[1][0].endswith(FOUR)
