"""Sequences of requests: they stay together, in order, and their loss is said."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import threading
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


def relay(server: Server, model: str, name: object, number: int, start: bool = False, end: bool = False) -> Any:
    """Send a request by way of a model that calls the other one."""
    inputs = [
        {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [number]},
        {"name": "MODEL", "shape": [1], "datatype": "BYTES", "data": [model]},
    ]
    parameters = {"sequence_id": name, "sequence_start": start, "sequence_end": end}
    return server.client.post("/v2/models/relay/infer", json={"inputs": inputs, "parameters": parameters})


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


def test_texts_are_empty_in_a_place_without_a_request(server: Server) -> None:
    """Inputs and states may be texts, the first of which is in a file."""

    def joined(name: int, text: str, **flags: bool) -> str:
        tensor = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [text]}
        parameters = {"sequence_id": name, **{f"sequence_{flag}": value for flag, value in flags.items()}}
        answer = server.client.post("/v2/models/joining/infer", json={"inputs": [tensor], "parameters": parameters})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["outputs"][0]["data"][0])

    assert joined(1, "a", start=True) == "from the file: a"
    assert joined(2, "b", start=True) == "from the file: b"
    assert joined(2, "c") == "from the file: bc"
    assert joined(1, "d", end=True) == "from the file: ad"


@pytest.mark.parametrize(("content", "said"), [
    (None, "No such file"), (b"\1\0\0", "it has 3 bytes, and must have 4"), (b"", "it has 0 bytes, and must have 4"),
])  # fmt: skip
def test_a_first_state_that_cannot_be_read_ends_the_start(content: bytes | None, said: str, tmp_path: Path) -> None:
    shutil.copytree(HERE / "sequences" / "remembering", tmp_path / "remembering")
    file = tmp_path / "remembering" / "initial_state" / "hundred"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    ended = panglot("serve", str(tmp_path / "remembering"), "--port", "0")
    assert (ended.returncode, "the first state 'BEFORE' cannot be read" in ended.stderr, said in ended.stderr) == (
        3, True, True,
    )  # fmt: skip


def test_what_belongs_to_no_sequence_is_refused(server: Server) -> None:
    for name, said in ((777, LOST), (0, "must specify a non-zero or non-empty correlation ID"), ("x", "is a number")):
        answer = send(server, "summing", name, 1)
        assert (answer.status_code, said in answer.text) == (400, True), answer.text
    total(server, "summing", 778, 1, start=True, end=True)
    assert LOST in send(server, "summing", 778, 1).text


def test_a_correlation_id_that_the_model_cannot_hold_is_refused_alone(server: Server) -> None:
    answer = send(server, "summing", -1, 1, start=True)
    assert (answer.status_code, "is of the type uint64, not -1" in answer.text) == (400, True), answer.text


def test_an_idle_sequence_ends(server: Server) -> None:
    """It has the only place: another sequence waits until it is idle for too long."""
    total(server, "forgetful", 1, 1, start=True)
    assert total(server, "forgetful", 2, 5, start=True, end=True) == 5
    assert LOST in send(server, "forgetful", 1, 1).text


def test_a_request_that_waits_for_a_place_is_answered_when_its_worker_is_replaced() -> None:
    """The sequences that have the places go on nowhere: they do not keep the worker, and this request, waiting."""
    with serving(HERE / "sequences" / "summing") as server, ThreadPoolExecutor(1) as another:
        for name in range(1, 5):
            total(server, "summing", name, 1, start=True)
        fifth = another.submit(total, server, "summing", 5, 5, start=True, end=True)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        os.kill(server.process.pid, signal.SIGHUP)
        assert fifth.result() == 5
        wait_until(lambda: LOST in send(server, "summing", 1, 0).text)


# Called by another model


def test_a_model_that_would_wait_for_its_own_sequences_gets_an_error(server: Server) -> None:
    """It has one worker, which waits for a place. The requests that would free one wait for this worker."""
    for name in range(1, 5):
        assert relay(server, "summing", name, 0, start=True).status_code == 200
    with ThreadPoolExecutor(1) as another:
        fifth = another.submit(relay, server, "summing", 5, 0, start=True)
        sent = 0
        while not fifth.done():
            sent += 1
            answer = relay(server, "summing", 1, 1)
            assert (answer.status_code, answer.json()["outputs"][0]["data"]) == (200, [sent])
    said = "all workers of relay wait for sequences of summing to end"
    assert (fifth.result().status_code, said in fifth.result().text) == (503, True), fifth.result().text
    for name in range(1, 5):
        assert relay(server, "summing", name, 0, end=True).status_code == 200
    assert relay(server, "summing", 5, 7, start=True, end=True).json()["outputs"][0]["data"] == [7]


def test_a_model_waits_for_the_sequences_of_others(server: Server) -> None:
    """Clients have all places, and may end their sequences at any time."""
    for name in range(1, 5):
        total(server, "summing", name, 0, start=True)
    mark = len(server.lines)
    with ThreadPoolExecutor(2) as others:
        # A name that no earlier test has: their lines may come late.
        fifth = others.submit(relay, server, "summing", 6005, 5, start=True, end=True)
        server.wait_log(r"a request of sequence 6005\b", after=mark)
        behind = others.submit(relay, server, "remembering", "behind", 6, start=True, end=True)
        wait_until(lambda: server.metric("panglot_requests_in_progress", model="relay") == 2)
        for name in range(1, 5):
            total(server, "summing", name, 0, end=True)
        answers = fifth.result(), behind.result()
    assert [answer.json()["outputs"][0]["data"] for answer in answers] == [[5], [106]]


@pytest.mark.parametrize("model", ["summing", "remembering"])
def test_sequences_by_way_of_a_model_are_right_or_refused(model: str, several: Server) -> None:
    """Twenty at once, by three workers: what is refused is refused at its start."""
    first = 0 if model == "summing" else 100

    def whole(name: int) -> int:
        for step in range(6):
            answer = relay(several, model, name, name * step, start=step == 0, end=step == 5)
            if step == 0 and answer.status_code == 503:
                assert "all workers of relay wait" in answer.text
                return 0
            assert answer.status_code == 200, answer.text
            assert answer.json()["outputs"][0]["data"] == [first + name * sum(range(step + 1))]
        return 1

    with ThreadPoolExecutor(20) as crowd:
        ended = sum(crowd.map(whole, range(1, 21)))
    assert ended == 20 if model == "remembering" else ended >= 4


def pids_of(server: Server, model: str) -> list[int]:
    workers = server.client.get("/status.json").json()["workers"]
    return [int(worker["pid"]) for worker in workers if worker["model"] == model and worker["state"] == "ready"]


def test_a_sequence_that_is_lost_with_its_worker_is_an_error(server: Server) -> None:
    assert total(server, "remembering", "lost", 1, start=True) == 101
    for pid in pids_of(server, "remembering"):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: LOST in send(server, "remembering", "lost", 1).text)
    assert total(server, "remembering", "lost", 1, start=True, end=True) == 101


# Several workers


@pytest.fixture(scope="module")
def several() -> Iterator[Server]:
    with serving(all_of(HERE / "sequences"), "--grpc-port", "0", "--workers", "3", ready=False) as started:
        started.wait_ready()
        yield started


@pytest.mark.timeout(600)
def test_nvidias_client_sends_sequences_to_several_workers(several: Server) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(HERE / "clients" / "sequences.py"), several.url.partition("://")[2], address(several)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("model", "first"), [("summing", 0), ("remembering", 100)])
def test_a_sequence_stays_with_one_of_several_workers(model: str, first: int, several: Server) -> None:
    def whole(name: int) -> list[int]:
        return [total(several, model, name, name * step, start=step == 0, end=step == 5) for step in range(6)]

    with ThreadPoolExecutor(20) as crowd:
        sums = list(crowd.map(whole, range(1, 21)))
    assert sums == [[first + name * sum(range(step + 1)) for step in range(6)] for name in range(1, 21)]
    workers = several.client.get("/status.json").json()["workers"]
    assert sum(worker["served"] > 0 for worker in workers if worker["model"] == model) > 1


@pytest.mark.timeout(180)
def test_a_worker_of_several_dies_with_its_own_sequences_alone(several: Server) -> None:
    """Every sum that is answered is right, and most sequences are of other workers."""
    begun, killed = threading.Barrier(21, timeout=60), threading.Event()

    def whole(name: int) -> bool:
        """Whether the sequence came to its end."""
        expected = 100
        for step in range(6):
            answer = send(several, "remembering", name, name * step, start=step == 0, end=step == 5)
            if answer.status_code != 200:
                assert step > 2, answer.text
                assert LOST in answer.text or "died" in answer.text, answer.text
                return False
            expected += name * step
            assert answer.json()["outputs"][0]["data"] == [expected]
            if step == 2:
                begun.wait()
                assert killed.wait(60)
        return True

    with ThreadPoolExecutor(20) as crowd:
        ended = crowd.map(whole, range(1, 21))
        begun.wait()
        os.kill(pids_of(several, "remembering")[0], signal.SIGKILL)
        wait_until(lambda: len(pids_of(several, "remembering")) == 3, 60)
        killed.set()
        results = list(ended)
    assert 0 < results.count(True) < 20


def test_jobs_leave_sequences_with_their_workers(several: Server) -> None:
    """Jobs have keys as requests have, and are no reason to send a request to another worker."""
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [5]}
    jobs = []

    def whole(name: int) -> list[int]:
        return [total(several, "remembering", name, name * step, start=step == 0, end=step == 5) for step in range(6)]

    with ThreadPoolExecutor(8) as crowd:
        sums = [crowd.submit(whole, name) for name in range(1, 25)]
        while not all(each.done() for each in sums):
            parameters = {"sequence_id": f"job {len(jobs)}", "sequence_start": True, "sequence_end": True}
            job = several.client.post(
                "/v2/models/remembering/infer",
                json={"inputs": [tensor], "parameters": parameters},
                headers={"prefer": "respond-async"},
            )
            assert job.status_code == 202, job.text
            jobs.append(job.json()["id"])
    results = [[100 + name * sum(range(step + 1)) for step in range(6)] for name in range(1, 25)]
    assert [each.result() for each in sums] == results
    for job in jobs:
        wait_until(lambda job=job: several.client.get(f"/jobs/{job}").json()["ended"])  # type: ignore[misc]
        answer = several.client.get(several.client.get(f"/jobs/{job}").json()["result"])
        assert answer.json()["outputs"][0]["data"] == [105], answer.text


def test_what_cannot_be_told_is_refused_where_there_are_several_workers(several: Server) -> None:
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [1]}
    body = {"inputs": [tensor], "parameters": {"sequence_id": 5, "sequence_start": True, "other": "x" * 70_000}}
    answer = several.client.post("/v2/models/summing/infer", json=body)
    assert (answer.status_code, "send its tensors as binary data" in answer.text) == (413, True)
    packed = gzip.compress(json.dumps({"inputs": [tensor], "parameters": {"sequence_id": 5}}).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    answer = several.client.post("/v2/models/summing/infer", content=packed, headers=headers)
    assert (answer.status_code, "compressed request" in answer.text) == (415, True)
    for name in (0, "", None, True, [1], {"a": 1}):
        assert send(several, "summing", name, 1).status_code == 400


@pytest.mark.parametrize("length", ["1" * 5_000, "9" * 19, "99999999", "-1", "x"])
def test_a_wrong_length_of_the_json_is_refused_where_there_are_several_workers(several: Server, length: str) -> None:
    """It is read here too, to find the worker of the sequence."""
    tensor = {"name": "X", "shape": [1, 1], "datatype": "INT32", "data": [1]}
    body = {"inputs": [tensor], "parameters": {"sequence_id": 5, "sequence_start": True}}
    headers = {"inference-header-content-length": length}
    answer = several.client.post("/v2/models/summing/infer", json=body, headers=headers)
    assert (answer.status_code, "Inference-Header-Content-Length" in answer.text) == (400, True), answer.text
    assert "Traceback" not in several.log


def test_the_number_of_workers_is_fixed(several: Server) -> None:
    ended = panglot("serve", str(HERE / "sequences" / "summing"), "--workers", "1:3", "--port", "0")
    assert (ended.returncode, "has a fixed number of workers" in ended.stderr) == (3, True)
