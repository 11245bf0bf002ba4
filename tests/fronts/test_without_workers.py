"""More fronts than workers: fronts without workers pass every call on, and nobody who asks can tell the difference."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from support.fronts import client_of, pid_of
from support.server import PACKAGES, Server, serving, wait_until

THREE = ("--workers", "1", "--fronts", "3", "--restart-delay", "0.2", "--queue", "4")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("lent_calls", *THREE) as server:
        yield server


def post(client: httpx.Client, **item: object) -> httpx.Response:
    return client.post("/predict", json=item)


def test_one_worker_answers_at_every_front(server: Server) -> None:
    assert len(server.fronts()) == 3
    (worker,) = server.workers()
    for front in range(3):
        client = client_of(server, front)
        assert post(client).json()["pid"] == worker.pid
        assert post(client, data="x" * 600_000).json()["size"] == 600_000
        assert len(post(client, answer=300_000).json()["text"]) == 300_000
        assert post(client, fail=True).status_code == 500
        assert client.post("/predict", content=b"{").status_code == 400
        assert client.get("/openapi.json").json()["paths"].keys() >= {"/predict"}
        with client.stream("POST", "/predict", json={"parts": 3}) as answer:
            assert sum(line.startswith("data: ") for line in answer.iter_lines()) == 3
        assert post(client, crash=True, of=front).status_code == 500
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 1)
        (worker,) = server.workers()
    assert server.metric("panglot_workers_wanted") == 1


def test_the_limit_of_the_queue_is_the_server_s(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    clients = [client_of(server, front) for front in (1, 2, 1, 2, 1)]
    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(post, clients[0], gate=str(gate))
        wait_until(Path(f"{gate}.begun").exists)
        waiting = []
        for number, client in enumerate(clients[1:], 1):
            waiting.append(threads.submit(post, client))
            wait_until(lambda number=number: server.metric("panglot_queue_length") == number)
        refused = post(client_of(server, 2))
        gate.touch()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "queue_full")
        assert [answer.result().status_code for answer in (first, *waiting)] == [200] * 5


def test_a_deadline_that_passes_elsewhere_is_told_once(server: Server, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    client = client_of(server, 1)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(post, client, gate=str(gate))
        wait_until(Path(f"{gate}.begun").exists)
        late = client_of(server, 2).post("/predict", json={}, headers={"x-timeout-ms": "300"})
        gate.touch()
        assert (late.status_code, first.result().status_code) == (504, 200)


def test_requests_wait_while_the_front_with_the_worker_is_started_again(server: Server) -> None:
    for victim in (0, 2):
        client = client_of(server, 1)
        answers: list[int] = []
        stop = threading.Event()

        def ask(client: httpx.Client = client, answers: list[int] = answers, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                answers.append(post(client, sleep=0.01).status_code)

        thread = threading.Thread(target=ask)
        thread.start()
        wait_until(lambda answers=answers: len(answers) > 5)
        psutil.Process(pid_of(server, victim)).kill()
        wait_until(lambda: len(server.fronts()) == 3)
        mark = len(answers)
        wait_until(lambda answers=answers, mark=mark: len(answers) > mark + 5)
        stop.set()
        thread.join()
        assert set(answers) == {200}
        wait_until(lambda: server.metric("panglot_fronts", state="answering") == 3)


def test_a_reload_is_told_to_the_fronts_without_workers(tmp_path: Path) -> None:
    package = tmp_path / "typed"
    package.mkdir()
    script = package / "model.py"
    script.write_text("def predict(first: int) -> int:\n    return first\n")
    with serving(package, "--fronts", "2") as server:
        clients = [client_of(server, front) for front in (0, 1)]
        assert all("first" in client.get("/openapi.json").text for client in clients)
        script.write_text("def predict(second: int) -> int:\n    return second + 1\n")
        server.process.send_signal(signal.SIGHUP)
        for client in clients:
            wait_until(lambda client=client: "second" in client.get("/openapi.json").text)
            wait_until(lambda client=client: client.post("/predict", json={"second": 1}).json() == 2)


def test_jobs_of_a_front_without_workers(tmp_path: Path) -> None:
    shutil.copytree(PACKAGES / "job_steps", tmp_path / "job_steps")
    with serving(tmp_path / "job_steps", "--fronts", "2") as server:
        client = client_of(server, 1)
        headers = {"prefer": "respond-async, wait=20"}
        assert client.post("/predict", json={"a": 1}, headers=headers).json() == {"echo": {"a": 1}}


def test_a_pool_with_fewer_workers_than_fronts_is_not_doubled() -> None:
    with serving("lent_calls", "--pools", "preprocess=1,inference=2", "--fronts", "2") as server:
        wait_until(lambda: len(server.workers()) == 3)
        assert post(client_of(server, 1)).status_code == 200
        assert len(server.workers()) == 3


def test_what_is_told_of_requests_is_the_same_at_every_front(tmp_path: Path) -> None:
    package = tmp_path / "told"
    package.mkdir()
    (package / "model.py").write_text(
        "from panglot import progress\n\ndef predict(name: str):\n    progress(0.5, 'halfway')\n"
        "    print('looked at', name)\n    return {'fox': 1}[name]\n"
    )
    with serving(package, "--fronts", "2", "--dev") as server:
        clients = [client_of(server, front) for front in (0, 1)]
        names = [f"{value}-{front}" for value in ("fox", "dog") for front in (0, 1)]
        for name in names:
            value, front = name.split("-")
            clients[int(front)].post("/predict", json={"name": value}, headers={"x-request-id": name})
        for client in clients:
            for name in names:
                told = client.get(f"/progress/{name}").json()
                assert told == {"progress": 0.5, "text": "halfway"}, name
                wait_until(lambda client=client, name=name: is_told(client.get(f"/status/{name}").json()))
            (counted,) = client.get("/v2/models/told/stats").json()["model_stats"]
            assert (counted["inference_count"], counted["execution_count"]) == (2, 2)
            assert counted["inference_stats"]["fail"]["count"] == 2
            assert counted["last_inference"] > 0


def is_told(request: dict[str, Any]) -> bool:
    """Whether what the script printed is there, and why it failed: they come after the answer."""
    value = request["id"].partition("-")[0]
    is_there = any(f"looked at {value}" in line["text"] for line in request["log"])
    return is_there and (value == "fox" or "KeyError" in request.get("traceback", ""))
