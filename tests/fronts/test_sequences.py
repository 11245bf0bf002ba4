"""Sequences of requests with several fronts: whichever front has a request, the worker of its sequence gets it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import environments
from support.fronts import client_of, pid_of, pids, status_of
from support.models import all_of
from support.rpc import address
from support.server import Server, serving, wait_until

TRITON = Path(__file__).parent.parent / "triton"
LOST = "must specify the START flag on the first request of the sequence"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ("--grpc-port", "0", "--workers", "3", "--fronts", "2", "--restart-delay", "0.1")
    with serving(all_of(TRITON / "sequences"), *flags, ready=False) as started:
        started.wait_ready()
        assert len(started.fronts()) == 2
        yield started


def send(client: httpx.Client, model: str, name: object, number: int, start: bool = False, end: bool = False) -> Any:
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [number]}
    parameters = {"sequence_id": name, "sequence_start": start, "sequence_end": end}
    return client.post(f"/v2/models/{model}/infer", json={"inputs": [tensor], "parameters": parameters}, timeout=60)


def relay(client: httpx.Client, name: int, number: int, start: bool = False, end: bool = False) -> Any:
    """Send a request to the model with four places by way of a model that calls it."""
    inputs = [
        {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [number]},
        {"name": "MODEL", "shape": [1], "datatype": "BYTES", "data": ["summing"]},
    ]
    parameters = {"sequence_id": name, "sequence_start": start, "sequence_end": end}
    body = {"inputs": inputs, "parameters": parameters}
    return client.post("/v2/models/relay/infer", json=body, timeout=60)


def total(client: httpx.Client, *arguments: Any, **flags: bool) -> int:
    answer = send(client, *arguments, **flags)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["outputs"][0]["data"][0])


@pytest.mark.timeout(600)
def test_nvidias_client_sends_sequences_to_several_fronts(server: Server) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(TRITON / "clients" / "sequences.py"), server.url.partition("://")[2], address(server)]
    for _ in range(2):
        # Each goes to the front with the fewest connections.
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("model", "first"), [("summing", 0), ("remembering", 100)])
def test_requests_of_a_sequence_come_over_connections_of_both_fronts(model: str, first: int, server: Server) -> None:
    def whole(name: int) -> list[int]:
        turns = [clients[name % 2][name // 2], clients[1 - name % 2][name // 2]]
        return [total(turns[step % 2], model, name, name * step, start=step == 0, end=step == 5) for step in range(6)]

    clients = [[client_of(server, front) for _ in range(5)] for front in (0, 1)]
    with ThreadPoolExecutor(9) as crowd:
        sums = list(crowd.map(whole, range(1, 10)))
    assert sums == [[first + name * sum(range(step + 1)) for step in range(6)] for name in range(1, 10)]
    workers = status_of(server)["workers"]
    mine = [worker for worker in workers if worker["model"] == model]
    assert {worker["front"] for worker in mine} == {0}
    assert sum(worker["served"] > 0 for worker in mine) > 1


def test_a_model_that_would_wait_for_its_own_sequences_gets_an_error_from_either_front(server: Server) -> None:
    """All its workers wait for a place. The requests that would free one come by both fronts, and wait for them."""
    clients = [client_of(server, front) for front in (0, 1)]
    waiting = [client_of(server, front) for front in (0, 1, 1)]
    # Sequences of one of the three workers, which has four places.
    names = [name for name in range(1000, 1100) if zlib.crc32(b"%d" % name) % 3 == 0][:7]
    for turn, name in enumerate(names[:4]):
        assert relay(clients[turn % 2], name, 0, start=True).status_code == 200
    with ThreadPoolExecutor(3) as others:
        late = [
            others.submit(relay, client, name, 5, start=True) for client, name in zip(waiting, names[4:], strict=True)
        ]
        sent = 0
        while not any(each.done() for each in late):
            sent += 1
            answer = relay(clients[sent % 2], names[0], 1)
            assert (answer.status_code, answer.json()["outputs"][0]["data"]) == (200, [sent])
        for turn, name in enumerate(names[:4]):
            assert relay(clients[turn % 2], name, 0, end=True).status_code == 200
    answers = [each.result() for each in late]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert refused
    assert all("all workers of relay wait for sequences of summing to end" in answer.text for answer in refused)
    for name, answer in zip(names[4:], answers, strict=True):
        assert answer.status_code in (200, 503)
        if answer.status_code == 200:
            assert relay(clients[0], name, 1, end=True).json()["outputs"][0]["data"] == [6]
    workers = status_of(server)["workers"]
    assert {worker["front"] for worker in workers if worker["model"] == "relay"} == {0}


def test_what_cannot_be_told_is_refused_by_either_front(server: Server) -> None:
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [1]}
    body = {"inputs": [tensor], "parameters": {"sequence_id": 5, "sequence_start": True, "other": "x" * 70_000}}
    packed = gzip.compress(json.dumps({"inputs": [tensor], "parameters": {"sequence_id": 5}}).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    for front in (0, 1):
        client = client_of(server, front)
        answer = client.post("/v2/models/summing/infer", json=body)
        assert (answer.status_code, "send its tensors as binary data" in answer.text) == (413, True)
        answer = client.post("/v2/models/summing/infer", content=packed, headers=headers)
        assert (answer.status_code, "compressed request" in answer.text) == (415, True)
        assert LOST in send(client, "summing", 777, 1).text


def test_a_sequence_outlives_the_death_of_a_front_that_only_passes_on(server: Server) -> None:
    client = client_of(server, 0)
    assert total(client, "remembering", "long", 1, start=True) == 101
    former = pid_of(server, 1)
    os.kill(former, signal.SIGKILL)
    assert total(client, "remembering", "long", 1) == 102
    wait_until(lambda: pids(server).get(1, former) != former, 60)
    assert total(client_of(server, 1), "remembering", "long", 1) == 103
    assert total(client, "remembering", "long", 1, end=True) == 104
