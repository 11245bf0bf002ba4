"""Jobs over restarts: what is given back, interrupted, and refused."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from support.server import PACKAGES, Server, serving

ASYNC = {"prefer": "respond-async"}


def flags(folder: Path) -> tuple[str, ...]:
    return "--workers", "2", "--jobs", str(folder)


def kill(server: Server) -> None:
    """End the front as a crash would; its workers end with it."""
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)


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
