"""The Open Inference Protocol over gRPC, by Google's own messages, whose descriptors the server itself gives."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from panglot.web.contract import CONTROL, PUBLIC
from panglot.web.grpc import descriptors, methods, reflection
from panglot_worker.tensors import protobuf
from support import certificates
from support.http2 import infer
from support.rpc import SERVICE, Rpc, address, reflected
from support.server import Server, panglot, serving, wait_until
from support.two_fronts import FRONTS

HEALTH = "/grpc.health.v1.Health/"
TOKEN = "secret-token"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("tensors", "--grpc-port", "0", "--max-body", "3m") as running:
        yield running


@pytest.fixture(scope="module")
def rpc(server: Server) -> Iterator[Rpc]:
    client = Rpc(server)
    yield client
    client.close()


def floats(raw: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


# What the server says


def test_the_server_and_its_model_are_described(rpc: Rpc) -> None:
    assert rpc.call("ServerLive").live
    assert rpc.call("ServerReady").ready
    assert rpc.call("ModelReady", rpc.kind("ModelReadyRequest")(name="tensors")).ready
    assert not rpc.call("ModelReady", rpc.kind("ModelReadyRequest")(name="other")).ready
    assert "binary_tensor_data" in rpc.call("ServerMetadata").extensions
    about = rpc.call("ModelMetadata", rpc.kind("ModelMetadataRequest")(name="tensors", version="1"))
    assert (about.name, list(about.versions)) == ("tensors", ["1"])
    assert [(one.name, one.datatype, list(one.shape)) for one in about.inputs] == [("input", "BYTES", [1])]
    config = rpc.call("ModelConfig", rpc.kind("ModelConfigRequest")(name="tensors")).config
    assert (config.name, config.max_batch_size, config.input[0].data_type) == ("tensors", 0, 13)
    (row,) = rpc.call("RepositoryIndex", rpc.kind("RepositoryIndexRequest")(ready=True)).models
    assert (row.name, row.version, row.state) == ("tensors", "1", "READY")


def test_statistics_count_calls(rpc: Rpc) -> None:
    def stats() -> Any:
        return rpc.call("ModelStatistics", rpc.kind("ModelStatisticsRequest")(name="tensors")).model_stats[0]

    before = stats()
    rpc.call("ModelInfer", rpc.tensors("tensors", x=[1.5]))
    after = stats()
    assert after.inference_count == before.inference_count + 1
    assert after.inference_stats.success.ns > before.inference_stats.success.ns
    assert (after.batch_stats[0].batch_size, after.batch_stats[0].compute_infer.count) == (1, after.execution_count)
    assert after.last_inference > 0
    assert len(rpc.call("ModelStatistics").model_stats) == 1


def test_health_is_answered_and_watched(rpc: Rpc) -> None:
    check = rpc.channel.unary_unary(HEALTH + "Check")
    for service in ("", SERVICE, "tensors"):
        assert check(protobuf.text(1, service), timeout=10) == b"\x08\x01"
    assert refused(lambda: check(protobuf.text(1, "other"), timeout=10))[0] == grpc.StatusCode.NOT_FOUND
    watching = rpc.channel.unary_stream(HEALTH + "Watch")(protobuf.text(1, "other"), timeout=10)
    assert next(watching) == b"\x08\x03"
    watching.cancel()


def test_reflection_lists_what_there_is(rpc: Rpc) -> None:
    listed = reflected(rpc.channel, protobuf.message(7, b""))[6]
    names = {bytes(content)[2:].decode() for _, _, content in protobuf.fields(memoryview(listed))}
    assert {SERVICE, "grpc.health.v1.Health"} <= names
    assert b"there is no" in reflected(rpc.channel, protobuf.text(4, "other.Service"))[7]
    calls = {f"/{SERVICE}/{call}" for call in descriptors.OURS[0].services["GRPCInferenceService"]}
    answered = {method for method in methods.METHODS if SERVICE in method}
    assert calls == answered | {f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ModelStreamInfer"}


@pytest.mark.parametrize(
    ("method", "said"),
    [("SystemSharedMemoryRegister", "shared memory"), ("CudaSharedMemoryStatus", "shared memory"),
     ("TraceSetting", "settings"), ("Nothing", "there is no method")],
)  # fmt: skip
def test_what_is_not_answered_is_refused_in_a_sentence(rpc: Rpc, method: str, said: str) -> None:
    code, sentence = refused(lambda: rpc.channel.unary_unary(f"/{SERVICE}/{method}")(b"", timeout=10))
    assert code == grpc.StatusCode.UNIMPLEMENTED
    assert said in sentence


# Inference


@pytest.mark.parametrize("raw", [True, False])
def test_tensors_go_through(rpc: Rpc, raw: bool) -> None:
    request = rpc.tensors("tensors", raw, a=[1, 2.5], b=[3])
    request.id = "7"
    request.outputs.add(name="b")
    answer = rpc.call("ModelInfer", request)
    assert (answer.model_name, answer.model_version, answer.id) == ("tensors", "1", "7")
    assert [(one.name, one.datatype, list(one.shape)) for one in answer.outputs] == [("b", "FP32", [1])]
    assert floats(answer.raw_output_contents[0]) == [3]


def test_one_element_of_bytes_is_the_native_body(rpc: Rpc) -> None:
    answer = rpc.call("ModelInfer", rpc.tensors("tensors", x=[b"[1, 2]"]))
    assert answer.outputs[0].datatype == "BYTES"
    assert answer.raw_output_contents[0][4:] == b'{"kind":"list","size":2}'


def test_a_tensor_without_elements_goes_through(rpc: Rpc) -> None:
    request = rpc.tensors("tensors", y=[1.0])
    request.inputs.add(name="x", datatype="INT32", shape=[0, 3])
    request.raw_input_contents.append(b"")
    answer = rpc.call("ModelInfer", request)
    assert list(answer.outputs[1].shape) == [0, 3]


def test_wrong_calls_have_a_status_and_a_sentence(rpc: Rpc, server: Server) -> None:
    def infer(request: Any, **more: Any) -> tuple[grpc.StatusCode, str]:
        return refused(lambda: rpc.call("ModelInfer", request, **more))

    code, sentence = infer(rpc.tensors("other", x=[1]))
    assert (code, sentence) == (grpc.StatusCode.NOT_FOUND, "there is no model 'other'; there is tensors")
    unknown = rpc.tensors("tensors", x=[1])
    unknown.model_version = "2"
    assert infer(unknown)[0] == grpc.StatusCode.NOT_FOUND
    wrong = rpc.tensors("tensors", x=[1, 2])
    wrong.inputs[0].shape[0] = 3
    assert infer(wrong) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "input 'x' of type FP32 and shape [3] has 12 bytes, and 8 were sent",
    )
    assert infer(rpc.tensors("tensors", fail=[1]))[0] == grpc.StatusCode.INTERNAL
    server.wait_log("as it was told")
    call = rpc.channel.unary_unary(f"/{SERVICE}/ModelInfer")
    assert refused(lambda: call(b"\xff\xff", timeout=10))[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert refused(lambda: call(b"\x0a\x07tensors\x2a\x01\xff", timeout=10))[0] == grpc.StatusCode.INVALID_ARGUMENT
    large = rpc.tensors("tensors", x=[b"x" * (4 << 20)])
    assert infer(large)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_deadline_and_a_client_that_leaves_cost_nobody_anything(rpc: Rpc, server: Server) -> None:
    code, _ = refused(lambda: rpc.call("ModelInfer", rpc.tensors("tensors", sleep=[0.5]), timeout=0.1))
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    call = rpc.channel.unary_unary(f"/{SERVICE}/ModelInfer")
    leaving = call.future(rpc.tensors("tensors", sleep=[0.3]).SerializeToString())
    waiting = [call.future(rpc.tensors("tensors", sleep=[30]).SerializeToString()) for _ in range(3)]
    for one in (*waiting, leaving):
        one.cancel()
    assert floats(rpc.call("ModelInfer", rpc.tensors("tensors", x=[4])).raw_output_contents[0]) == [4]
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_http_and_grpc_share_one_engine(rpc: Rpc, server: Server) -> None:
    before = server.metric("panglot_requests_total", route="grpc ModelInfer", status="200")
    threads = [threading.Thread(target=lambda: server.predict({"x": [1]})) for _ in range(5)]
    for thread in threads:
        thread.start()
    for number in range(20):
        assert floats(rpc.call("ModelInfer", rpc.tensors("tensors", x=[number])).raw_output_contents[0]) == [number]
    for thread in threads:
        thread.join()
    assert server.metric("panglot_requests_total", route="grpc ModelInfer", status="200") == before + 20
    assert len(server.workers()) == 1


# Streams


def streamed(rpc: Rpc, *requests: Any) -> list[Any]:
    call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
    answers = call(iter([request.SerializeToString() for request in requests]), metadata=rpc.metadata, timeout=30)
    return [rpc.kind("ModelStreamInferResponse").FromString(answer) for answer in answers]


def test_many_inferences_on_one_call(rpc: Rpc) -> None:
    requests = []
    for number in range(200):
        request = rpc.tensors("other" if number % 50 == 7 else "tensors", x=[number])
        request.id = str(number)
        requests.append(request)
    answers = streamed(rpc, *requests)
    assert len(answers) == 200
    assert sum(bool(answer.error_message) for answer in answers) == 4
    good = {
        int(one.infer_response.id): floats(one.infer_response.raw_output_contents[0])
        for one in answers
        if not one.error_message
    }
    assert good == {number: [number] for number in range(200) if number % 50 != 7}
    failed = {one.infer_response.id for one in answers if one.error_message}
    assert failed == {"7", "57", "107", "157"}
    assert all(one.infer_response.parameters["triton_final_response"].bool_param for one in answers)
    assert streamed(rpc) == []


def test_an_answer_in_parts_is_a_stream_of_answers(tmp_path: Path) -> None:
    script = (
        "def predict(request):\n    for number in range(int(request['n'][0])):\n        yield {'number': [number]}\n"
    )
    (tmp_path / "parts.py").write_text(script)
    with serving(tmp_path / "parts.py", "--grpc-port", "0") as server:
        rpc = Rpc(server)
        config = rpc.call("ModelConfig", rpc.kind("ModelConfigRequest")(name="parts")).config
        assert config.model_transaction_policy.decoupled
        answers = streamed(rpc, rpc.tensors("parts", n=[3]))
        numbers = [struct.unpack("<q", one.infer_response.raw_output_contents[0])[0] for one in answers]
        assert numbers == [0, 1, 2]
        wants_end = rpc.tensors("parts", n=[2])
        wants_end.parameters["triton_enable_empty_final_response"].bool_param = True
        last = [one.infer_response.parameters["triton_final_response"].bool_param for one in streamed(rpc, wants_end)]
        assert last == [False, False, True]
        code, sentence = refused(lambda: rpc.call("ModelInfer", rpc.tensors("parts", n=[3])))
        assert (code, "ModelStreamInfer" in sentence) == (grpc.StatusCode.INVALID_ARGUMENT, True)
        body = {"inputs": [{"name": "n", "datatype": "FP32", "shape": [1], "data": [3]}]}
        assert server.client.post("/v2/models/parts/infer", json=body).status_code == 400
        rpc.close()


def test_a_client_that_leaves_a_stream_frees_what_it_asked_for(rpc: Rpc, server: Server) -> None:
    call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
    requests = [rpc.tensors("tensors", sleep=[0.2]).SerializeToString() for _ in range(10)]
    answers = call(iter(requests))
    next(answers)
    answers.cancel()
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)
    assert floats(rpc.call("ModelInfer", rpc.tensors("tensors", x=[4])).raw_output_contents[0]) == [4]


def test_a_client_that_reads_slowly_holds_back_itself_alone(rpc: Rpc, server: Server) -> None:
    """Its further requests are not read, and it has all its answers once it reads."""
    call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
    large = rpc.kind("ModelInferRequest")(model_name="tensors")
    large.inputs.add(name="x", datatype="UINT8", shape=[1 << 20])
    large.raw_input_contents.append(bytes(1 << 20))
    answers = call(iter([large.SerializeToString()] * 150), timeout=60)
    next(answers)
    for number in range(5):
        assert floats(rpc.call("ModelInfer", rpc.tensors("tensors", x=[number])).raw_output_contents[0]) == [number]
    assert sum(len(answer) > 1 << 20 for answer in answers) == 149
    wait_until(lambda: server.metric("panglot_request_memory_bytes") == 0)


def test_an_answer_in_parts_goes_on_when_its_client_reads_again(tmp_path: Path) -> None:
    """It is larger than what may wait: the worker stands still until then."""
    made = tmp_path / "made"
    (tmp_path / "flood.py").write_text(
        "def predict(request):\n    for _ in range(int(request['n'][0])):\n"
        f"        with open({str(made)!r}, 'a') as file:\n            file.write('.')\n"
        "        yield {'x': 'x' * 500_000}\n"
    )

    def stands_still() -> bool:
        before = made.stat().st_size
        time.sleep(1)
        return made.stat().st_size == before

    with serving(tmp_path / "flood.py", "--grpc-port", "0") as server, contextlib.closing(Rpc(server)) as rpc:
        call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        answers = call(iter([rpc.tensors("flood", n=[300]).SerializeToString()]), timeout=60)
        next(answers)
        wait_until(stands_still)
        assert made.stat().st_size < 300
        assert sum(len(answer) > 500_000 for answer in answers) == 299


def test_a_client_that_does_not_read_an_answer_in_parts_is_cut_off_when_others_wait(tmp_path: Path) -> None:
    (tmp_path / "flood.py").write_text(
        "PART = {'x': 'x' * 500_000}\n\n\ndef predict(request):\n    yield PART\n    while request['n'][0]:\n"
        "        yield PART\n"
    )
    with serving(tmp_path / "flood.py", "--grpc-port", "0", "--slow-reader", "1s") as server:
        rpc = Rpc(server)
        call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        answers = call(iter([rpc.tensors("flood", n=[1]).SerializeToString()]), timeout=60)
        next(answers)
        other = Rpc(server).channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        assert len(list(other(iter([rpc.tensors("flood", n=[0]).SerializeToString()]), timeout=60))) == 1
        assert b"too slowly" in list(answers)[-1]
        assert server.metric("panglot_connections_refused_total", limit="slow_reader") == 1


def test_a_client_that_does_not_read_what_cannot_be_held_back_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "flood.py").write_text(
        "async def predict(request):\n    while True:\n        yield {'x': 'x' * 500_000}\n"
    )
    with serving(tmp_path / "flood.py", "--grpc-port", "0") as server:
        rpc = Rpc(server)
        call = rpc.channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")
        answers = call(iter([rpc.tensors("flood", n=[1]).SerializeToString()]), timeout=60)
        next(answers)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        code, sentence = refused(lambda: list(answers))
        assert (code, "too slowly" in sentence) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
        rpc.close()


# Who may call, how it starts, and how it stops


WATCH = HEALTH + "Watch"
STREAMS = (f"/{SERVICE}/ModelStreamInfer", WATCH, *reflection.METHODS)
ACCESS = {
    **{name: method.access for name, method in methods.METHODS.items()},
    **dict.fromkeys((f"/{SERVICE}/ModelInfer", *STREAMS), "infer"),
    WATCH: PUBLIC,
}
"""Who may make each call; those that have descriptors are all there."""


def code_of(rpc: Rpc, method: str, metadata: Any) -> grpc.StatusCode:
    """How a call without anything in its message ends; of a stream, its first answer."""
    try:
        if method in STREAMS:
            answers = rpc.channel.stream_stream(method)(iter([b""]), metadata=metadata, timeout=20)
            next(answers, None)
            answers.cancel()
        else:
            rpc.channel.unary_unary(method)(b"", metadata=metadata, timeout=20)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_every_call_keeps_its_declared_access() -> None:
    for file in descriptors.OURS:
        for service, calls in file.services.items():
            assert {f"/{file.package}.{service}/{call}" for call in calls} <= set(ACCESS)
    with serving("tensors", "--grpc-port", "0", env={"PANGLOT_TOKEN": TOKEN}) as server:
        rpc = Rpc(server, token=TOKEN)
        for method, access in ACCESS.items():
            for given in (None, "", "wrong", f"Bearer {TOKEN}x", "Bearer", TOKEN, f"Bearer {TOKEN}"):
                code = code_of(rpc, method, [("authorization", given)] if given is not None else None)
                if access == CONTROL:
                    assert code == grpc.StatusCode.PERMISSION_DENIED, "without --admin nothing is changed by calls"
                    continue
                allowed = access == PUBLIC or given == f"Bearer {TOKEN}"
                assert (code != grpc.StatusCode.UNAUTHENTICATED) == allowed, (method, given, code)
        assert (
            refused(lambda: rpc.channel.unary_unary("/other/Call")(b"", timeout=10))[0]
            == grpc.StatusCode.UNAUTHENTICATED
        )
        rpc.close()


def local_channel(server: Server) -> grpc.Channel:
    return grpc.insecure_channel(address(server), [("grpc.use_local_subchannel_pool", 1)])


def conversation(channel: grpc.Channel, over: threading.Event) -> Any:
    """A call that has its first answer, and may ask more until it is over."""

    def requests() -> Iterator[bytes]:
        yield infer()
        over.wait(60)

    return channel.stream_stream(f"/{SERVICE}/ModelStreamInfer")(requests(), timeout=60)


def test_connections_are_limited_as_those_of_http() -> None:
    """An idle one makes room for another. While none is, one too many may only ask how the server is."""
    with serving("tensors", "--grpc-port", "0", "--max-connections", "4") as server:
        channels = [local_channel(server) for _ in range(5)]
        more = threading.Event()
        talking = [conversation(channel, more) for channel in channels[:4]]
        assert all(b"tensors" in next(talk) for talk in talking)

        def ask(method: str, channel: grpc.Channel, wait: bool = False) -> bytes:
            return bytes(channel.unary_unary(f"/{SERVICE}/{method}")(b"", timeout=30, wait_for_ready=wait))

        assert ask("ServerLive", channels[4], wait=True) == b"\x08\x01"
        code, sentence = refused(lambda: ask("ServerMetadata", channels[4]))
        assert (code, sentence) == (grpc.StatusCode.UNAVAILABLE, "too many connections; try again later")
        # One of each front, which have half of the connections each.
        for talk in talking[: int(FRONTS or 1)]:
            talk.cancel()

        def has_room() -> bool:
            """The server may hear of a new connection before it hears that the call on another was cancelled."""
            with contextlib.suppress(grpc.RpcError), local_channel(server) as another:
                return b"panglot" in ask("ServerMetadata", another, wait=True)
            return False

        wait_until(has_room)
        more.set()
        for channel in channels:
            channel.close()


def test_a_client_that_says_nothing_is_closed() -> None:
    with serving("tensors", "--grpc-port", "0", "--header-timeout", "1") as server:
        where = int(address(server).rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", where), timeout=30) as silent:
            while silent.recv(4096):
                pass


def test_tls_is_that_of_http(tmp_path: Path) -> None:
    cert, key = certificates.make(tmp_path, "localhost", "DNS:localhost", "IP:127.0.0.1")
    certified = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serving("tensors", "--grpc-port", "0", *certified) as server:
        rpc = Rpc(server, grpc.ssl_channel_credentials(cert.read_bytes()))
        assert floats(rpc.call("ModelInfer", rpc.tensors("tensors", x=[4])).raw_output_contents[0]) == [4]
        rpc.close()


def test_a_server_that_stops_answers_the_calls_that_have_come() -> None:
    with serving("tensors", "--grpc-port", "0") as server:
        rpc = Rpc(server)
        call = rpc.channel.unary_unary(f"/{SERVICE}/ModelInfer")
        going = call.future(rpc.tensors("tensors", sleep=[3.0]).SerializeToString(), timeout=30)
        watching = rpc.channel.unary_stream(HEALTH + "Watch")(b"", timeout=30)
        assert next(watching) == b"\x08\x01"
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        server.process.send_signal(signal.SIGTERM)
        assert floats(rpc.kind("ModelInferResponse").FromString(going.result()).raw_output_contents[0]) == [3.0]
        assert server.process.wait(20) == 0
        rpc.close()


def test_a_port_that_is_taken_is_said_in_one_line(server: Server) -> None:
    taken = address(server).rpartition(":")[2]
    done = panglot("serve", "tests/packages/tensors", "--port", "0", "--grpc-port", taken)
    assert done.returncode == 3
    assert "gRPC cannot listen there" in done.stderr
    assert "Traceback" not in done.stderr


# The transport that could once be chosen


def test_the_transport_that_is_always_taken_need_not_be_chosen(server: Server) -> None:
    with serving("tensors", "--grpc-port", "0", "--grpc-transport", "own") as told:
        rpc = Rpc(told)
        assert rpc.call("ServerLive").live
        rpc.close()
    assert told.log.count("--grpc-transport is no longer needed; Panglot's own HTTP/2 always carries gRPC") == 1
    assert "no longer needed" not in server.log


@pytest.mark.parametrize("way", ["flag", "variable", "file"])
def test_grpcio_as_the_transport_is_refused_with_the_fix(tmp_path: Path, way: str) -> None:
    (tmp_path / "model.py").write_text("def predict(request):\n    return request\n")
    (tmp_path / "panglot.toml").write_text('grpc_transport = "grpcio"\n' if way == "file" else "")
    flags = ("--grpc-transport", "grpcio") if way == "flag" else ()
    env = {"PANGLOT_GRPC_TRANSPORT": "grpcio"} if way == "variable" else {}
    done = panglot("serve", str(tmp_path), "--port", "0", "--grpc-port", "0", *flags, env=env)
    assert done.returncode == 3
    names = {"flag": "--grpc-transport", "variable": "PANGLOT_GRPC_TRANSPORT", "file": "grpc_transport in panglot.toml"}
    said = "'grpcio' can no longer be chosen; Panglot's own HTTP/2 always carries gRPC (fix: leave it out)"
    assert done.stderr.splitlines()[-1].endswith(f"{names[way]}: {said}"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_never_loads_grpcio(rpc: Rpc, server: Server) -> None:
    assert "cygrpc" not in Path(f"/proc/{server.process.pid}/maps").read_text()
