"""Calls that a front with busy workers gives to a front with a free one: nobody who asks can tell the difference."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from support.server import PACKAGES, Server, serving, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ("--workers", "2", "--fronts", "2", "--queue", "6", "--timeout", "20")
    with serving("lent_calls", *flags) as server:
        yield server


def ask(client: httpx.Client, **item: object) -> int:
    """The process that answers."""
    answer = client.post("/predict", json=item)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["pid"])


def of_one_front(server: Server, count: int) -> list[httpx.Client]:
    """Clients whose connections one front has."""
    by_worker: defaultdict[int, list[httpx.Client]] = defaultdict(list)

    def is_enough() -> bool:
        client = server.new_client()
        by_worker[ask(client)].append(client)
        return any(len(clients) == count for clients in by_worker.values())

    # A front without a ready worker lends everything: the process that answers would not tell whose connection it is.
    wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
    wait_until(is_enough)
    return next(clients for clients in by_worker.values() if len(clients) == count)


class Busy:
    """A front whose only worker runs a call until the test lets it end."""

    def __init__(self, server: Server, folder: Path, clients: int = 2) -> None:
        self.gate = folder / "gate"
        self.first, *self.clients = of_one_front(server, clients)
        self.worker = ask(self.first)
        self.client = self.clients[0]
        self.thread = threading.Thread(target=lambda: ask(self.first, gate=str(self.gate)))

    def __enter__(self) -> Busy:
        self.thread.start()
        wait_until(Path(f"{self.gate}.begun").exists)
        return self

    def __exit__(self, *exc: object) -> None:
        self.gate.touch()
        self.thread.join()


def lent(server: Server) -> float:
    return sum(server.metric("panglot_calls_lent_total", front=str(front)) for front in (0, 1))


def test_a_call_runs_where_a_worker_is_free(server: Server, tmp_path: Path) -> None:
    before = lent(server)
    with Busy(server, tmp_path) as busy:
        for _ in range(5):
            assert ask(busy.client) != busy.worker
    assert lent(server) >= before + 5
    assert ask(busy.client) == busy.worker, "nothing is lent while the front's own worker is free"


def test_large_bodies_and_answers_arrive_whole(server: Server, tmp_path: Path) -> None:
    with Busy(server, tmp_path) as busy:
        answer = busy.client.post("/predict", json={"data": "z" * 600_000, "answer": 700_000}).json()
        assert (answer["size"], answer["text"]) == (600_000, "y" * 700_000)
        assert answer["pid"] != busy.worker


def test_a_stream_arrives_part_by_part_also_for_a_slow_reader(server: Server, tmp_path: Path) -> None:
    with Busy(server, tmp_path) as busy:
        lines: list[dict[str, int]] = []
        headers = {"accept": "application/jsonl"}
        item = {"parts": 200, "size": 100_000}
        with busy.client.stream("POST", "/predict", json=item, headers=headers) as answer:
            assert answer.status_code == 200
            for line in answer.iter_lines():
                if not lines:
                    time.sleep(1.0)
                if line.strip():
                    lines.append(json.loads(line))
        assert [line["part"] for line in lines] == list(range(200))
        assert {line["pid"] for line in lines} != {busy.worker}


def test_failures_deadlines_and_deaths_are_told_as_ever(server: Server, tmp_path: Path) -> None:
    with Busy(server, tmp_path) as busy:
        failed = busy.client.post("/predict", json={"fail": True})
        assert (failed.status_code, failed.json()["error"]["code"]) == (500, "script_error")
        late = busy.client.post("/predict", json={"sleep": 1.0}, headers={"x-timeout-ms": "200"})
        assert (late.status_code, late.json()["error"]["code"]) == (504, "timeout")
        assert ask(busy.client, death=str(tmp_path / "death")) != busy.worker, "it runs again, as after any death"


def test_a_client_that_disconnects_frees_the_other_front(server: Server, tmp_path: Path) -> None:
    with Busy(server, tmp_path, clients=3) as busy:
        impatient, patient = busy.clients
        with contextlib.suppress(httpx.TimeoutException):
            impatient.post("/predict", json={"sleep": 1.5}, timeout=0.3)
        assert ask(patient) != busy.worker
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)


def test_the_queue_is_as_long_as_the_server_says_though_all_load_is_on_one_front(
    server: Server, tmp_path: Path
) -> None:
    """Two calls run, six wait: of one front's share alone only three would."""
    clients = of_one_front(server, 10)
    with ThreadPoolExecutor(10) as threads:
        gates = [tmp_path / name for name in ("first", "second", *["third"] * 6)]
        waiting = []
        for client, gate in zip(clients, gates, strict=False):
            waiting.append(threads.submit(client.post, "/predict", json={"gate": str(gate)}))
            if gate.name != "third":
                # Those that come together wait together, before any of them is begun.
                wait_until(Path(f"{gate}.begun").exists)
        wait_until(lambda: server.metric("panglot_queue_length") == 6)
        refused = clients[8].post("/predict", json={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "queue_full")
        for gate in gates:
            gate.touch()
        assert {answer.result().status_code for answer in waiting} == {200}


def test_all_load_on_one_front_uses_all_workers(server: Server) -> None:
    clients = of_one_front(server, 4)
    pids: set[int] = set()
    until = time.monotonic() + 2

    def load(client: httpx.Client) -> None:
        while time.monotonic() < until:
            pids.add(ask(client, sleep=0.01))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(load, clients))
    assert pids == {worker.pid for worker in server.workers()}


def test_deaths_count_over_all_fronts(server: Server) -> None:
    clients = [server.new_client() for _ in range(4)]
    item = {"crash": True, "text": "the same for all"}
    codes = [clients[number % 4].post("/predict", json=item).json()["error"]["code"] for number in range(8)]
    assert set(codes[4:]) == {"poisonous"}, codes
    server.wait_log("are refused for")
    assert server.log.count("are refused for") == 1
    wait_until(lambda: len(server.workers()) == 2)


def test_a_lent_call_runs_again_when_its_front_dies(server: Server, tmp_path: Path) -> None:
    with Busy(server, tmp_path) as busy, ThreadPoolExecutor(1) as threads:
        gate = tmp_path / "second"
        answer = threads.submit(ask, busy.client, gate=str(gate))
        wait_until(Path(f"{gate}.begun").exists)
        own = psutil.Process(busy.worker).parent()
        other = next(front for front in server.fronts() if front != own)
        other.kill()
        gate.touch()
        busy.gate.touch()
        assert answer.result(30) > 0
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 2)


def test_a_lent_call_runs_twice_at_most_though_worker_and_front_die(server: Server, tmp_path: Path) -> None:
    seen, gate = tmp_path / "seen", tmp_path / "second"
    with Busy(server, tmp_path) as busy, ThreadPoolExecutor(1) as threads:
        item = {"id": 1, "seen": str(seen), "gate": str(gate)}
        answer = threads.submit(busy.client.post, "/predict", json=item)
        begun = Path(f"{gate}.begun")
        wait_until(lambda: begun.exists() and begun.read_text() != "")
        first = int(begun.read_text())
        psutil.Process(first).kill()
        wait_until(lambda: begun.read_text() not in ("", str(first)))
        own = psutil.Process(busy.worker).parent()
        next(front for front in server.fronts() if front != own).kill()
        lost = answer.result(30)
        gate.touch()
    assert lost.status_code == 503
    assert lost.json()["error"]["code"] == "place_lost"
    assert seen.read_text().split() == ["1", "1"]
    wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 2)


def test_calls_of_two_models_are_told_apart(tmp_path: Path) -> None:
    """Each model numbers its calls for itself, so two calls that are lent at once may have the same number."""
    folder = PACKAGES / "lent_calls"
    with serving(Path(f"a={folder}"), f"b={folder}", "--workers", "2", "--fronts", "2") as server:
        by_worker: defaultdict[int, list[httpx.Client]] = defaultdict(list)

        def post(client: httpx.Client, model: str, **item: object) -> dict[str, int]:
            answer = client.post(f"/models/{model}/predict", json=item)
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        def is_enough() -> bool:
            client = server.new_client()
            by_worker[post(client, "a")["pid"]].append(client)
            return any(len(clients) == 4 for clients in by_worker.values())

        wait_until(is_enough)
        pid, clients = next(entry for entry in by_worker.items() if len(entry[1]) == 4)
        gates = [tmp_path / name for name in ("own a", "own b", "lent a")]
        with ThreadPoolExecutor(3) as threads:
            waiting = []
            for client, model, gate in zip(clients, "aba", gates, strict=False):
                waiting.append(threads.submit(post, client, model, gate=str(gate), answer=3))
                wait_until(Path(f"{gate}.begun").exists)
            for size in range(30):
                assert len(str(post(clients[3], "b", answer=size)["text"])) == size
            for gate in gates:
                gate.touch()
            answers = [answer.result(30) for answer in waiting]
        assert answers[0]["pid"] == pid
        assert answers[2]["pid"] != pid
        assert {str(answer["text"]) for answer in answers} == {"yyy"}
