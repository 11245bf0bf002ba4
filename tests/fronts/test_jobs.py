"""Jobs with several fronts: one front stores them, all fronts run them, and the death of any loses none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from panglot.jobs.storage.memory_folder import MEMORY, PREFIX, MemoryFolder
from support.fronts import client_of, pid_of, pids
from support.server import Server, serving, wait_until

ASYNC = {"prefer": "respond-async"}
TWO = ("--workers", "2", "--fronts", "2", "--restart-delay", "0.2")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("job_steps", *TWO) as server:
        yield server


def submit(client: httpx.Client, body: dict[str, Any], **headers: str) -> str:
    answer = client.post("/predict", json=body, headers={**ASYNC, **headers})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def ended(client: httpx.Client, job: str) -> dict[str, Any]:
    state: dict[str, Any] = {}

    def has_ended() -> bool:
        state.update(client.get(f"/jobs/{job}", headers={"prefer": "wait=10"}).json())
        return bool(state["ended"])

    wait_until(has_ended, 60, lambda: str(state))
    return state


def kill(server: Server, front: int) -> None:
    """End a front, and wait until its successor tells of itself: the one that was killed may live for a moment."""
    before = pid_of(server, front)
    psutil.Process(before).kill()
    wait_until(lambda: pids(server).get(front, before) != before, 60)


def test_jobs_run_on_the_workers_of_all_fronts(server: Server) -> None:
    for front in (0, 1):
        client = client_of(server, front)
        jobs = [submit(client, {"steps": 20, "pause": 0.1}) for _ in range(2)]
        states = []

        def both_run(client: httpx.Client = client, jobs: list[str] = jobs, states: list[Any] = states) -> bool:
            states[:] = [client.get(f"/jobs/{job}").json() for job in jobs]
            return all(state["progress"] for state in states)

        wait_until(both_run, 20, lambda states=states: str(states))
        for job in jobs:
            client.delete(f"/jobs/{job}")


def test_a_reader_hears_of_a_job_that_any_front_has_accepted_and_any_front_runs(server: Server) -> None:
    clients = [client_of(server, front) for front in (0, 1)]
    for submitter, reader in ((0, 1), (1, 0), (1, 1)):
        # Two at a time: one of them runs in each front.
        readers = [client_of(server, reader) for _ in range(2)]
        jobs = [submit(clients[submitter], {"steps": 9, "stream": 4, "pause": 0.1}) for _ in readers]
        with ThreadPoolExecutor(2) as threads:
            told = list(
                threads.map(lambda client, job: client.get(f"/jobs/{job}/events", timeout=60).text, readers, jobs)
            )
        for text in told:
            kinds = Counter(line.partition(": ")[2] for line in text.splitlines() if line.startswith("event: "))
            assert kinds["part"] == 4, text
            assert kinds["progress"] >= 1, text
            assert kinds["end"] == 1, text


def test_a_key_is_one_job_over_all_fronts_and_the_list_is_the_same(server: Server) -> None:
    clients = [client_of(server, front) for front in (0, 1)]
    names = {submit(client, {"n": 1}, **{"idempotency-key": "one"}) for client in clients}
    assert len(names) == 1
    assert clients[1].post("/predict", json={}, headers={**ASYNC, "idempotency-key": "one"}).status_code == 422
    listed = [client.get("/jobs").json() for client in clients]
    assert listed[0]["jobs"][0]["id"] == listed[1]["jobs"][0]["id"]
    assert 'href="jobs"' in clients[1].get("/status", headers={"accept": "text/html"}).text
    wait_until(lambda: server.metric("panglot_jobs", state="done") >= 1)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
def test_no_accepted_job_is_lost_when_a_front_is_killed(victim: int, durable: bool, tmp_path: Path) -> None:
    flags = ("--jobs", str(tmp_path / "jobs")) if durable else ()
    ledger = tmp_path / "ledger"
    with serving("job_steps", *TWO, *flags) as server:
        accepted: dict[str, str] = {}
        stop = threading.Event()
        # The connection of a front that is not killed: its clients notice nothing but the time.
        calm = client_of(server, 1 - victim)
        restless = client_of(server, victim)
        faults: list[str] = []

        def send(client: httpx.Client, prefix: str) -> None:
            number = 0
            while not stop.is_set():
                name = f"{prefix}-{number}"
                body = {"name": name, "count": str(ledger), "sleep": 0.01}
                try:
                    accepted[name] = submit(client, body, **{"idempotency-key": name})
                    number += 1
                    # Jobs in memory are a thousand at most.
                    time.sleep(0.02)
                except httpx.TransportError:
                    if prefix == "calm":
                        faults.append(f"{name}: the connection was reset")

        threads = [threading.Thread(target=send, args=pair) for pair in ((calm, "calm"), (restless, "restless"))]
        for thread in threads:
            thread.start()
        for turn in range(2):
            wait_until(lambda turn=turn: len(accepted) > 60 * (turn + 1), 60)
            kill(server, victim)
            wait_until(lambda: len(server.fronts()) == 2 and len(server.workers()) == 2, 60)
        wait_until(lambda: len(accepted) > 180, 60)
        stop.set()
        for thread in threads:
            thread.join()
        assert not faults
        states = {name: ended(calm, job)["state"] for name, job in accepted.items()}
        assert set(states.values()) == {"done"}, Counter(states.values())
        for name, job in accepted.items():
            assert calm.get(f"/jobs/{job}/result").json()["echo"]["name"] == name
    runs = Counter(ledger.read_text().split())
    assert set(accepted) <= set(runs)


def test_with_rerun_off_a_job_that_ran_when_its_front_died_is_interrupted(tmp_path: Path) -> None:
    flags = ("--jobs", str(tmp_path / "jobs"), "--no-rerun")
    with serving("job_steps", *TWO, *flags) as server:
        client = client_of(server, 1)
        job = submit(client, {"sleep": 30})
        wait_until(lambda: client.get(f"/jobs/{job}").json()["state"] == "running")
        psutil.Process(pid_of(server, 0)).kill()
        wait_until(lambda: client.get(f"/jobs/{job}").json()["state"] == "interrupted")


def test_a_client_whose_time_passes_while_jobs_are_away_is_told_when_to_try_again() -> None:
    with serving("job_steps", *TWO) as server:
        client = client_of(server, 1)
        submit(client, {})
        first = psutil.Process(pid_of(server, 0))
        first.suspend()
        try:
            answer = client.post("/predict", json={}, headers={**ASYNC, "x-timeout-ms": "500"})
        finally:
            first.resume()
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "jobs_unavailable"
        assert int(answer.headers["retry-after"]) > 0
        assert client.post("/predict", json={}).status_code == 200
        job = submit(client, {"after": 1})
        assert ended(client, job)["state"] == "done"


def test_a_server_that_stops_answers_those_who_wait_at_any_front(tmp_path: Path) -> None:
    with serving("job_steps", *TWO, "--jobs", str(tmp_path), "--drain", "2") as server:
        clients = [client_of(server, front) for front in (0, 1)]
        # More than are claimed ahead of the workers, so that the last does not run before the end.
        waits = [submit(clients[1], {"sleep": 20}) for _ in range(12)][-1]
        answers: list[httpx.Response] = []

        def wait(client: httpx.Client) -> None:
            answers.append(client.get(f"/jobs/{waits}", headers={"prefer": "wait=60"}, timeout=60))

        threads = [threading.Thread(target=wait, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        # Nothing tells that the fronts have them: those who wait for a job are no calls.
        time.sleep(2)
        server.process.terminate()
        for thread in threads:
            thread.join(40)
        assert [answer.status_code for answer in answers] == [200, 200]
        assert server.process.wait(30) == 0
    with serving("job_steps", *TWO, "--jobs", str(tmp_path)) as server:
        assert server.client.get(f"/jobs/{waits}").json()["state"] in ("queued", "running")
        for job in server.client.get("/jobs").json()["jobs"]:
            server.client.delete(f"/jobs/{job['id']}")


def test_folders_in_memory_of_servers_that_were_killed_are_removed(tmp_path: Path) -> None:
    abandoned = tmp_path / f"{PREFIX}abandoned"
    abandoned.mkdir()
    used = MemoryFolder(tmp_path)
    assert used.path is not None
    assert abandoned.exists(), "it may be a server that starts just now"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("panglot.jobs.storage.memory_folder.YOUNG", 0.0)
        other = MemoryFolder(tmp_path)
    assert not abandoned.exists()
    assert used.path.exists()
    for folder in (used, other):
        folder.remove()
    assert not list(tmp_path.iterdir())
    assert MemoryFolder(tmp_path / "missing").path is None


def test_a_folder_in_memory_is_not_durable_and_goes_with_the_server() -> None:
    with serving("job_steps", *TWO) as server:
        answer = client_of(server, 1).post("/predict", json={}, headers=ASYNC)
        assert answer.headers["x-panglot-durable"] == "false"
        assert answer.json()["durable"] is False
        owner = f"pid {server.process.pid} "
        (folder,) = [path.parent for path in MEMORY.glob(f"{PREFIX}*/lock") if text_of(path).startswith(owner)]
    assert not folder.exists()


def text_of(path: Path) -> str:
    """What is in a file; nothing where it has gone, with the server of another test."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    return ""


def test_a_platform_s_health_counts_the_workers_of_all_fronts() -> None:
    with serving("runpod_ops", "--fronts", "2") as server:
        for front in (0, 1):
            told = client_of(server, front).get("/health").json()
            assert told["workers"]["ready"] == 1, told
