"""Jobs over restarts: what is given back, interrupted, and refused."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

from support.server import PACKAGES, Server, further_fronts, panglot, serving

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
    """One line tells the process to stop, which is the parent where there are several fronts."""
    with serving("job_steps", *flags(tmp_path)) as server:
        done = panglot("serve", str(PACKAGES / "job_steps"), "--port", "0", *flags(tmp_path), *further_fronts((), {}))
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert re.match(rf"error: --jobs {tmp_path} is in use by pid {server.process.pid} on .* \(fix: ", line), line


def sent_events(server: Server, job: str, last: str = "") -> list[tuple[str, str, Any]]:
    """Kind, id and data of all events of a job, behind the last one that was read."""
    answer = server.client.get(f"/jobs/{job}/events", headers={"last-event-id": last} if last else {}, timeout=60)
    told = []
    for block in answer.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            told.append((lines["event"], lines["id"], json.loads(lines["data"])))
    return told


def test_events_go_on_at_every_position_over_a_restart(tmp_path: Path) -> None:
    server = Server(PACKAGES / "job_steps", *flags(tmp_path / "jobs")).wait_ready()
    ended = server.client.post("/predict", json={"stream": 6}, headers=ASYNC).json()["id"]
    before = [event for event in sent_events(server, ended) if event[0] == "part"]
    assert len(before) == 6
    broken = server.client.post("/predict", json={"stream": 12, "pause": 0.1}, headers=ASYNC).json()["id"]
    last = ""
    with server.client.stream("GET", f"/jobs/{broken}/events", timeout=60) as answer:
        for line in answer.iter_lines():
            last = line.partition(": ")[2] if line.startswith("id: ") else last
            if last == "1.3":
                break
    kill(server)
    server.close()
    with serving("job_steps", *flags(tmp_path / "jobs")) as server:
        for position, (_, number, _) in enumerate(before):
            rest = sent_events(server, ended, number)
            assert [event for event in rest if event[0] == "part"] == before[position + 1 :]
            assert rest[-1][0] == "end"
        # The one that ran has begun anew: a reader hears of the new attempt, and gets all of it.
        told = sent_events(server, broken, last)
        parts = [(number, data["text"]) for kind, number, data in told if kind == "part"]
        assert [number for number, _ in parts] == [f"2.{number}" for number in range(1, 13)]
        assert told[0][0] == "state"
        assert "".join(text for _, text in parts) == server.client.get(f"/jobs/{broken}/result").text
