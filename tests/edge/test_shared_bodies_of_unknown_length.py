"""Bodies whose length nobody announced, and those that came by gRPC, lie in shared memory too."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.rpc import Rpc
from support.server import Server, serving, wait_until
from support.traffic import Gate
from support.wire import Wire

SCRIPT = '''
import hashlib, os, time
from panglot import File, route

kept = []

def predict(request):
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.005)
    if isinstance(request, dict) and "x" in request:
        request["x"][0] += 1
        return {"sum": float(request["x"].sum())}
    return hashlib.md5(request.view).hexdigest()

@route("/typed")
def typed(image: File, keep: bool = False):
    """What a picture is; the next call tells what became of one that was kept."""
    before = [hashlib.md5(file.bytes).hexdigest() for file in kept]
    kept[:] = [image] if keep else []
    copied = isinstance(image._body, bytes)
    return {"copied": copied, "digest": hashlib.md5(image.view).hexdigest(), "before": before}
'''
SHARED = "panglot_shared_bodies"
BODY = random.Random(3).randbytes(200_000)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    return Gate(tmp_path_factory.mktemp("gate") / "open")


@pytest.fixture(scope="module")
def server(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("otherwise")
    (folder / "model.py").write_text(SCRIPT)
    with serving(str(folder), "--grpc-port", "0", "--max-body", "32MiB", env={"GATE": str(gate)}) as server:
        yield server
        wait_until(lambda: server.metric(SHARED) == server.metric("panglot_request_memory_bytes") == 0, 20)


def chunked(body: bytes, step: int = 30_000) -> bytes:
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    start = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: x/y\r\nTransfer-Encoding: chunked\r\n\r\n"
    return start + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.one_front("each front has buffers of its own, and a call for the other front leaves them")
def test_chunks_and_messages_are_shared(server: Server, gate: Gate) -> None:
    large, rpc = bytes(12 << 20), Rpc(server)
    name = server.client.post("/v2/repository/index").json()[0]["name"]
    request = rpc.kind("ModelInferRequest")(model_name=name)
    request.inputs.add(name="x", datatype="FP32", shape=[50_000])
    request.raw_input_contents.append(bytes(200_000))
    with Wire(server) as first, Wire(server) as second, Wire(server, patience=60) as third:
        first.send(chunked(BODY))
        wait_until(lambda: server.metric(SHARED) == 1)
        second.send(chunked(b"small"))
        third.send(chunked(large, 1 << 20))
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 3)
        assert server.metric(SHARED) == 1, "neither is what is small, nor what would take long to copy"
        answer = rpc.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer").future(
            request.SerializeToString(), timeout=60
        )
        wait_until(lambda: server.metric(SHARED) == 2)
        gate.open()
        for client, body in ((first, BODY), (second, b"small"), (third, large)):
            assert hashlib.md5(body).hexdigest().encode() in client.reply().body
        assert answer.result(), "the script wrote into its array"
    rpc.close()


def test_functions_with_hints_get_files_where_they_lie(server: Server) -> None:
    """What such a function keeps is copied when its call is over."""
    digest, headers = hashlib.md5(BODY).hexdigest(), {"content-type": "image/x"}
    told = server.client.post("/typed?keep=true", content=BODY, headers=headers).json()
    assert told == {"copied": False, "digest": digest, "before": []}
    told = server.client.post("/typed", content=bytes(len(BODY)), headers=headers).json()
    assert told["before"] == [digest]
    told = server.client.post("/typed", files={"image": ("a.png", BODY)}).json()
    assert told == {"copied": False, "digest": digest, "before": []}


LATER = """
import asyncio, hashlib, os, time

def read(view):
    before = hashlib.md5(view).hexdigest()
    print("reading", flush=True)
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.005)
    print("read the same:", hashlib.md5(view).hexdigest() == before, flush=True)

async def predict(request):
    if request.type == "x/later":
        await asyncio.get_running_loop().run_in_executor(None, read, request.view)
    return len(request)
"""


def test_what_a_thread_still_reads_is_not_used_again_when_the_call_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(LATER)
    gate = Gate(tmp_path / "gate")
    with serving(tmp_path, env={"GATE": str(gate)}) as server:
        with Wire(server) as leaving:
            leaving.send(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: x/later\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)  # fmt: skip
            server.wait_log("reading")
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        for _ in range(3):
            answer = server.client.post("/predict", content=bytes(len(BODY)), headers={"content-type": "x/y"})
            assert answer.json() == len(BODY)
        gate.open()
        server.wait_log("read the same: True")
        wait_until(lambda: server.metric(SHARED) == 0, 20)
