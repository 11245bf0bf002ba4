"""Sequences of requests: they stay together, in order, and their loss is said."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support import environments
from support.models import all_of
from support.rpc import address
from support.server import Server, panglot, serving, wait_until

HERE = Path(__file__).parent
LOST = "must specify the START flag on the first request of the sequence"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(all_of(HERE / "sequences"), "--grpc-port", "0", ready=False) as started:
        started.wait_ready()
        yield started


def send(server: Server, model: str, name: object, number: int, start: bool = False, end: bool = False) -> Any:
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [number]}
    parameters = {"sequence_id": name, "sequence_start": start, "sequence_end": end}
    body = {"inputs": [tensor], "parameters": parameters}
    return server.client.post(f"/v2/models/{model}/infer", json=body)


def total(server: Server, *arguments: Any, **flags: bool) -> int:
    answer = send(server, *arguments, **flags)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["outputs"][0]["data"][0])


@pytest.mark.timeout(600)
def test_nvidias_client_sends_sequences(server: Server) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(HERE / "clients" / "sequences.py"), server.url.partition("://")[2], address(server)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("model", "first"), [("summing", 0), ("remembering", 100)])
def test_sequences_of_many_clients_do_not_mix(model: str, first: int, server: Server) -> None:
    """Twenty at once, of which the first model runs four: the others wait until one of these ends."""

    def whole(name: int) -> list[int]:
        return [total(server, model, name, name * step, start=step == 0, end=step == 5) for step in range(6)]

    with ThreadPoolExecutor(20) as crowd:
        sums = list(crowd.map(whole, range(1, 21)))
    assert sums == [[first + name * sum(range(step + 1)) for step in range(6)] for name in range(1, 21)]


def test_a_place_without_a_request_is_not_ready(server: Server) -> None:
    for name in (901, 902):
        total(server, "summing", name, 1, start=True)
    mark = len(server.lines)
    assert total(server, "summing", 902, 1) == 2
    server.wait_log("a call with -r", after=mark)
    for name in (901, 902):
        total(server, "summing", name, 1, end=True)


def test_what_belongs_to_no_sequence_is_refused(server: Server) -> None:
    for name, said in ((777, LOST), (0, "must specify a non-zero or non-empty correlation ID"), ("x", "is a number")):
        answer = send(server, "summing", name, 1)
        assert (answer.status_code, said in answer.text) == (400, True), answer.text
    total(server, "summing", 778, 1, start=True, end=True)
    assert LOST in send(server, "summing", 778, 1).text


def test_an_idle_sequence_ends(server: Server) -> None:
    """It has the only place: another sequence waits until it is idle for too long."""
    total(server, "forgetful", 1, 1, start=True)
    assert total(server, "forgetful", 2, 5, start=True, end=True) == 5
    assert LOST in send(server, "forgetful", 1, 1).text


def test_a_sequence_that_is_lost_with_its_worker_is_an_error(server: Server) -> None:
    assert total(server, "remembering", "lost", 1, start=True) == 101
    workers = server.client.get("/status.json").json()["workers"]
    (pid,) = [int(worker["pid"]) for worker in workers if worker["model"] == "remembering"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: LOST in send(server, "remembering", "lost", 1).text)
    assert total(server, "remembering", "lost", 1, start=True, end=True) == 101


def test_a_model_of_sequences_has_one_worker(server: Server) -> None:
    assert "config.pbtxt:5: instance_group.count has no effect here: a model of sequences has one worker" in server.log
    ended = panglot("serve", str(HERE / "sequences" / "summing"), "--workers", "2", "--port", "0")
    assert (ended.returncode, "a model of sequences has one worker" in ended.stderr) == (3, True)
