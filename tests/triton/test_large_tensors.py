"""Large tensors between models: they stay in shared memory, and on every way a request can end it is given back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from panglot.engine.memory import pieces
from panglot.engine.memory.buffers import Arena
from panglot_worker.line import calls, wire
from panglot_worker.line.calls import BodyPiece
from support.models import all_of
from support.server import Server, serving, wait_until

LARGE = Path(__file__).parent / "large"
STEPS = {"first": 1, "second": 10, "third": 100}
COUNT = 150_000
WAIT, REFUSE, DIE = -10, -20, -30
SHARED = ("panglot_shared_bodies", "panglot_slots_in_use")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(all_of(LARGE), ready=False) as started:
        started.wait_ready()
        # The front learns from the first answers how large a buffer must be.
        for _ in range(3):
            asked(started, "chain", numbers(1))
        yield started


def numbers(first: float, count: int = COUNT) -> Any:
    values = numpy.arange(count, dtype="float32") % 100
    values[0] = first
    return values


def content(model: str, values: Any) -> tuple[bytes, dict[str, str]]:
    raw = values.tobytes()
    name = "IN" if model == "chain" else "X"
    tensor = {"name": name, "datatype": "FP32", "shape": [len(values)], "parameters": {"binary_data_size": len(raw)}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return text + raw, {"inference-header-content-length": str(len(text))}


def asked(server: Server, model: str, values: Any, **options: str) -> Any:
    body, headers = content(model, values)
    return server.client.post(f"/v2/models/{model}/infer", content=body, headers={**headers, **options})


def outputs(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    length = int(answer.headers["inference-header-content-length"])
    at, found = length, {}
    for output in json.loads(answer.content[:length])["outputs"]:
        size = output["parameters"]["binary_data_size"]
        found[output["name"]] = numpy.frombuffer(answer.content[at : at + size], "float32")
        at += size
    return found


def plus(values: Any, added: int) -> Any:
    result = values + numpy.float32(added)
    result[0] = values[0]
    return result


def shared(server: Server) -> float:
    """How many bodies and answers lie in the memory of all models."""
    found = [line for line in server.client.get("/metrics").text.splitlines() if line.startswith(SHARED)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


def is_empty(server: Server) -> bool:
    return shared(server) == 0


@pytest.mark.parametrize("count", [10, 4_096, 5_001, COUNT, 3 * COUNT])
@pytest.mark.parametrize("model", ["chain", "caller"])
def test_tensors_of_every_size_pass(model: str, count: int, server: Server) -> None:
    values = numbers(7, count)
    found = outputs(asked(server, model, values))
    assert numpy.array_equal(found["OUT" if model == "chain" else "Y"], plus(values, 111))
    if model == "chain":
        # A step that changes its input in place changes nothing for others.
        assert numpy.array_equal(found["middle"], plus(values, 11))
    wait_until(lambda: is_empty(server))


@pytest.mark.one_front("the front of the client keeps the body, to run the call again if the other front dies")
@pytest.mark.parametrize(("step", "buffers"), [("first", 2), ("second", 2), ("third", 1)])
def test_answers_of_steps_are_what_the_next_reads(step: str, buffers: int, server: Server) -> None:
    """While a step runs: the client's body or the answer of the step before, and the buffer for its own answer.

    The client's own answer, which the last step gives, lies elsewhere.
    """
    mark = len(server.lines)
    with sent(server, "chain", numbers(WAIT - STEPS[step])):
        server.wait_log(f"{step} waits", after=mark)
        # Otherwise a step's input would be a copy, and the client's body would be there until the answer.
        wait_until(lambda: shared(server) == buffers)
    wait_until(lambda: is_empty(server))


@contextlib.contextmanager
def sent(server: Server, model: str, values: Any) -> Iterator[None]:
    """A request that is under way in the block, and whose client then leaves."""
    body, headers = content(model, values)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        lines = [f"POST /v2/models/{model}/infer HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "\r\n"]).encode() + body)
        yield


@pytest.mark.parametrize("model", ["chain", "caller"])
@pytest.mark.parametrize("step", STEPS)
def test_memory_comes_back_however_a_request_ends(step: str, model: str, server: Server) -> None:
    number = STEPS[step]
    refused = asked(server, model, numbers(REFUSE - number))
    assert (refused.status_code >= 400, "not that" in refused.text) == (True, True)
    wait_until(lambda: is_empty(server))
    died = asked(server, model, numbers(DIE - number))
    assert (died.status_code >= 400, "died" in died.text) == (True, True)
    wait_until(lambda: is_empty(server))
    late = asked(server, model, numbers(WAIT - number), **{"x-timeout-ms": "500"})
    assert late.status_code == 504
    wait_until(lambda: is_empty(server))
    mark = len(server.lines)
    with sent(server, model, numbers(WAIT - number)):
        server.wait_log(f"{step} waits", after=mark)
    server.wait_log(f"{step} cancelled", after=mark)
    wait_until(lambda: is_empty(server))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed", ["first", "second", "third", "chain", "caller"])
def test_any_worker_dies_under_load_and_only_its_calls_are_repeated(killed: str, server: Server) -> None:
    def repeated() -> dict[str, float]:
        return {
            model: server.metric("panglot_reruns_total", reason="worker_died", model=model)
            for model in ("chain", "caller", *STEPS)
        }

    model = "caller" if killed == "caller" else "chain"
    before, under_way, go_on = repeated(), threading.Event(), threading.Event()

    def ask(number: int) -> bool:
        if number == 20:
            under_way.set()
            go_on.wait(60)
        values = numbers(number)
        return numpy.array_equal(next(iter(outputs(asked(server, model, values)).values())), plus(values, 111))

    with ThreadPoolExecutor(6) as crowd:
        right = crowd.map(ask, range(80))
        assert under_way.wait(60)
        # Once: a call that has two workers die on it is not repeated.
        kill(server, killed)
        go_on.set()
        assert all(right)
    after = repeated()
    others = [name for name in before if name != killed]
    assert [after[name] for name in others] == [before[name] for name in others]
    wait_until(lambda: is_empty(server))


def kill(server: Server, model: str) -> None:
    """Kill the worker of a model, once it has one."""

    def pids() -> list[int]:
        workers = server.client.get("/status.json").json()["workers"]
        return [int(one["pid"]) for one in workers if one["model"] == model and one["state"] == "ready"]

    wait_until(lambda: bool(pids()))
    (pid,) = pids()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid not in pids())


# What a worker may name


@pytest.mark.parametrize(
    "piece",
    [
        BodyPiece(2, 0, 0, 9),
        BodyPiece(1, 1 << 20, 0, 9),
        BodyPiece(1, -1, 1 << 14, 1),
        BodyPiece(1, -1, 5, (1 << 14) - 4),
    ],
)
def test_a_worker_names_only_what_it_was_given(piece: BodyPiece) -> None:
    arena = Arena(1 << 20, 1 << 16)
    buffer = arena.take(1 << 14)
    assert buffer is not None
    if piece.location <= 0:
        piece = piece._replace(location=buffer.address)
    with pytest.raises(wire.WireError, match="was not lent"):
        pieces.received(memoryview(calls.table([piece])), {1: buffer}.get)
    fine = pieces.received(memoryview(calls.table([BodyPiece(1, buffer.address, 5, 9)])), {1: buffer}.get)
    buffer.release()
    assert arena.used == 1
    fine.release()
    assert arena.used == 0
    arena.close()


@pytest.mark.parametrize(
    "body", [b"", b"\0" * 4, struct.pack("<I", 2) + b"\0" * 24, struct.pack("<IQQII", 1, 0, 0, 0, 5)]
)
def test_a_table_that_is_wrong_is_refused(body: bytes) -> None:
    with pytest.raises(wire.WireError):
        calls.pieces(memoryview(body))
