"""Jobs over restarts: `kill -9` at random moments loses nothing, and no answer is computed twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.server import PACKAGES, ROOT, Server, serving

ASYNC = {"prefer": "respond-async"}
ROUNDS, JOBS, KILLS = (50, 500, 3) if os.environ.get("PANGLOT_SOAK") else (2, 60, 2)


def flags(folder: Path) -> tuple[str, ...]:
    return "--workers", "2", "--jobs", str(folder)


def kill(server: Server) -> None:
    """End the front as a crash would; its workers end with it."""
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)


def all_ended(server: Server, jobs: list[str]) -> dict[str, dict[str, Any]]:
    ended: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + 120
    while len(ended) < len(jobs) and time.monotonic() < until:
        for job in jobs:
            if job not in ended:
                answer = server.client.get(f"/jobs/{job}", headers={"prefer": "wait=5"})
                assert answer.status_code == 200, (job, answer.text)
                if answer.json()["ended"]:
                    ended[job] = answer.json()
    assert len(ended) == len(jobs)
    return ended


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_accepted_job_survives_kills_at_random_moments(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    accepted: dict[str, str] = {}
    answered: set[str] = set()
    ledger = tmp_path / "runs"

    def send(server: Server, names: list[str]) -> None:
        with httpx.Client(base_url=server.url, timeout=30) as client, contextlib.suppress(httpx.HTTPError):
            for name in names:
                body = {
                    "name": name,
                    "count": str(ledger),
                    "sleep": 0.01,
                    "pad": "x" * (100_000 if chance.random() < 0.1 else 10),
                }
                answer = client.post("/predict", json=body, headers={**ASYNC, "idempotency-key": name})
                if answer.status_code == 202:
                    accepted[name] = answer.json()["id"]

    names = [f"job-{index}" for index in range(JOBS)]
    for life in range(KILLS):
        server = Server(PACKAGES / "job_steps", *flags(tmp_path / "jobs"))
        # A first life may end while the model is loading: jobs are accepted then too.
        if life:
            server.wait_ready()
        # Also repeats of what an earlier life accepted: the same key is the same job.
        before = dict(accepted)
        sender = threading.Thread(target=send, args=(server, chance.sample(names, JOBS)))
        sender.start()
        wanted = len(before) + chance.randrange(5, max(6, JOBS // KILLS))
        until = time.monotonic() + 30
        while len(accepted) < min(wanted, JOBS) and sender.is_alive() and time.monotonic() < until:
            time.sleep(0.005)
        with contextlib.suppress(httpx.HTTPError):
            done = server.client.get("/jobs", params={"state": "done", "limit": 200}).json()
            answered |= {job["id"] for job in done["jobs"]}
        runs_before = Counter(ledger.read_text().split()) if ledger.exists() else Counter()
        kill(server)
        sender.join(60)
        for name, job in before.items():
            assert accepted[name] == job
    with serving(ROOT / "tests" / "packages" / "job_steps", *flags(tmp_path / "jobs")) as server:
        ended = all_ended(server, list(accepted.values()))
        assert {job["state"] for job in ended.values()} == {"done"}
        for name, job in accepted.items():
            assert server.client.get(f"/jobs/{job}/result").json()["echo"]["name"] == name
    runs = Counter(ledger.read_text().split())
    assert set(accepted) <= set(runs)
    # Those whose answer was stored before the last kill were not computed again.
    by_id = {job: name for name, job in accepted.items()}
    for job in answered & by_id.keys():
        assert runs[by_id[job]] == runs_before[by_id[job]]


def test_a_planned_stop_gives_back_what_it_did_not_finish(tmp_path: Path) -> None:
    server = Server(PACKAGES / "job_steps", "--workers", "1", "--jobs", str(tmp_path), "--drain", "1").wait_ready()
    jobs = [server.client.post("/predict", json={"sleep": 5, "n": n}, headers=ASYNC).json()["id"] for n in range(3)]
    until = time.monotonic() + 20
    while server.client.get(f"/jobs/{jobs[0]}").json()["state"] != "running" and time.monotonic() < until:
        time.sleep(0.05)
    server.process.terminate()
    server.process.wait(30)
    with serving("job_steps", *flags(tmp_path)) as server:
        state = server.client.get(f"/jobs/{jobs[0]}").json()
        assert state["state"] in ("queued", "running")
        assert state["attempts"] <= 1
        for job in jobs:
            server.client.delete(f"/jobs/{job}")
        assert server.client.post("/predict", json={}).status_code == 200


def test_with_rerun_off_a_job_that_ran_at_the_crash_is_interrupted(tmp_path: Path) -> None:
    server = Server(PACKAGES / "job_steps", *flags(tmp_path / "jobs"), "--no-rerun")
    server.wait_ready()
    running = server.client.post("/predict", json={"sleep": 30}, headers=ASYNC).json()["id"]
    until = time.monotonic() + 20
    while server.client.get(f"/jobs/{running}").json()["state"] != "running" and time.monotonic() < until:
        time.sleep(0.05)
    kill(server)
    with serving("job_steps", *flags(tmp_path / "jobs"), "--no-rerun") as server:
        state = server.client.get(f"/jobs/{running}").json()
        assert (state["state"], state["error"]["code"]) == ("interrupted", "interrupted")


def test_a_second_server_on_the_folder_does_not_start(tmp_path: Path) -> None:
    with serving("job_steps", *flags(tmp_path)), pytest.raises(AssertionError, match="is in use by pid"):
        Server(PACKAGES / "job_steps", *flags(tmp_path))
