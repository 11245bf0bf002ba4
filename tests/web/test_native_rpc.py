"""gRPC services that a dialect brings: methods, the model that a message names, answers in parts, reflection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory

from panglot_worker.tensors import protobuf
from support.rpc import address, reflected
from support.server import Server, serving, wait_until

TOKEN = "a-Secret.Token"
BEARER = [("authorization", f"Bearer {TOKEN}")]
SERVICE = "atlas.v1.Atlas"


@pytest.fixture(scope="module")
def server(atlas: Callable[..., Path]) -> Iterator[Server]:
    first, second = atlas("first"), atlas("second")
    env = {"PYTHONPATH": str(first.parent / "outside"), "PANGLOT_TOKEN": TOKEN}
    with serving(first, f"second={second}", "--grpc-port", "0", env=env) as running:
        running.client.headers["authorization"] = f"Bearer {TOKEN}"
        yield running


@pytest.fixture(scope="module")
def channel(server: Server) -> Iterator[grpc.Channel]:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address(server), options) as opened:
        yield opened


@pytest.fixture(scope="module")
def kind(channel: grpc.Channel) -> Callable[[str], Any]:
    """The classes of messages, as the server describes them."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(empty_pb2.DESCRIPTOR.serialized_pb)
    described = reflected(channel, protobuf.text(4, SERVICE), BEARER)[4]
    (file,) = (content for _, _, content in protobuf.fields(memoryview(described)))
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(bytes(file)))
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"atlas.v1.{name}"))


@pytest.fixture
def ask(channel: grpc.Channel, kind: Callable[[str], Any]) -> Callable[..., dict[str, Any]]:
    def ask(method: str, metadata: Any = BEARER, compression: Any = None, **fields: Any) -> dict[str, Any]:
        call = channel.unary_unary(f"/{SERVICE}/{method}")
        body = kind("Question")(**fields).SerializeToString()
        answer = call(body, metadata=metadata, timeout=30, compression=compression)
        return json.loads(kind("Told").FromString(answer).json)

    return ask


def code(call: Callable[[], Any]) -> tuple[Any, str]:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code(), refused.value.details()


def test_a_message_reaches_the_model_it_names(ask: Callable[..., dict[str, Any]]) -> None:
    for fields, model in (
        ({"model_name": "second"}, "second"),
        ({"model_name": "second", "version": "1.0", "tags": {"a": b"\0"}}, "second"),
        ({"model_name": "first"}, "first"),
        ({}, "first"),
    ):
        told = ask("Ask", text=b"hello", **fields)
        assert (told["model"], told["text"], told["route"]) == (model, "hello", f"/{SERVICE}/Ask")
    told = ask("AskDefault", model_name="second")
    assert (told["model"], told["route"], told["path"]) == ("first", "default", f"/{SERVICE}/AskDefault")


@pytest.mark.parametrize("size", [20_000, 300_000, 5_000_000])
def test_large_messages_come_whole_and_leave_nothing(ask: Any, server: Server, size: int) -> None:
    told = ask("Ask", model_name="second", text=b"x" * size)
    assert told["model"] == "second"
    assert told["size"] > size
    wait_until(lambda: server.metric("panglot_held_bytes") == 0)


def test_a_name_behind_a_large_field_is_asked_for_earlier(ask: Any, kind: Any, channel: grpc.Channel) -> None:
    body = (
        kind("Question")(text=b"x" * 100_000).SerializeToString()
        + kind("Question")(model_name="first").SerializeToString()
    )
    call = channel.unary_unary(f"/{SERVICE}/Ask")
    status, words = code(lambda: call(body, metadata=BEARER, timeout=30))
    assert status == grpc.StatusCode.INVALID_ARGUMENT
    assert "send it first" in words


def test_faults_are_told_in_the_manner_of_the_service(ask: Any, channel: grpc.Channel) -> None:
    assert code(lambda: ask("Ask", model_name="third")) == (grpc.StatusCode.NOT_FOUND, "atlas: no_model")
    assert code(lambda: ask("Ask", text=b"fail")) == (grpc.StatusCode.INTERNAL, "atlas: script_error")
    assert code(lambda: ask("Nothing"))[0] == grpc.StatusCode.UNIMPLEMENTED
    broken = channel.unary_unary(f"/{SERVICE}/Ask")
    assert code(lambda: broken(b"\x0a\xff", metadata=BEARER, timeout=30))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_answers_in_parts(kind: Any, channel: grpc.Channel, server: Server, ask: Any) -> None:
    call = channel.unary_stream(f"/{SERVICE}/AskInParts")

    def parts(text: str, model: str = "second") -> list[dict[str, Any]]:
        body = kind("Question")(text=text.encode(), model_name=model).SerializeToString()
        return [json.loads(kind("Told").FromString(part).json) for part in call(body, metadata=BEARER, timeout=30)]

    assert [(told["part"], told["model"]) for told in parts("parts 5")] == [(part, "second") for part in range(5)]
    assert len(parts("parts 2000")) == 2000
    assert parts("parts 0") == []
    assert [told["text"] for told in parts("whole")] == ["whole"]
    assert code(lambda: parts("fail")) == (grpc.StatusCode.INTERNAL, "atlas: script_error")
    assert code(lambda: parts("x", "third")) == (grpc.StatusCode.NOT_FOUND, "atlas: no_model")
    cut = call(kind("Question")(text=b"parts 1000000").SerializeToString(), metadata=BEARER, timeout=30)
    next(cut)
    cut.cancel()
    status, words = code(lambda: ask("Ask", text=b"parts 3"))
    assert (status, "in parts" in words) == (grpc.StatusCode.INTERNAL, True)
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
    assert ask("Ask", text=b"on")["text"] == "on"


def test_small_compressed_messages_are_read(ask: Any) -> None:
    gzip = grpc.Compression.Gzip
    assert ask("Ask", compression=gzip, text=b"y" * 3000, model_name="second")["model"] == "second"
    large = code(lambda: ask("Ask", compression=gzip, text=b"y" * 300_000))
    assert large[0] == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_front_answers_what_needs_no_script(channel: grpc.Channel, kind: Any) -> None:
    ping = channel.unary_unary(f"/{SERVICE}/Ping")
    assert kind("Pong").FromString(ping(b"", timeout=30)).model == "first"


@pytest.mark.parametrize("given", [TOKEN, f"Api-Key {TOKEN}", f"Bearer {TOKEN}"])
def test_the_forms_of_the_token_open_the_service(ask: Any, given: str) -> None:
    assert ask("Ask", metadata=[("authorization", given)])["model"] == "first"


def test_other_calls_are_refused(ask: Any) -> None:
    for metadata in (None, [("authorization", "Api-Key wrong")]):
        assert code(lambda metadata=metadata: ask("Ask", metadata=metadata))[0] == grpc.StatusCode.UNAUTHENTICATED


def test_reflection_lists_the_service_and_what_it_imports(channel: grpc.Channel) -> None:
    listed = reflected(channel, protobuf.text(7, "*"), BEARER)[6]
    assert SERVICE.encode() in listed
    assert b"inference.GRPCInferenceService" in listed
    for symbol in (f"{SERVICE}.Ask", "atlas.v1.Question", "google.protobuf.Empty"):
        assert 4 in reflected(channel, protobuf.text(4, symbol), BEARER)
    assert 4 in reflected(channel, protobuf.text(3, "google/protobuf/empty.proto"), BEARER)
    assert 7 in reflected(channel, protobuf.text(4, f"{SERVICE}.Nothing"), BEARER)


def test_calls_are_counted_by_their_method(server: Server, ask: Any) -> None:
    ask("Ask", model_name="second")
    assert server.metric("panglot_requests_total", route="grpc Ask", model="second", status="200") > 0
