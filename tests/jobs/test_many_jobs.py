"""A long queue of jobs costs neither time nor memory: the queue is a table on disk."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from support.server import Server, serving
from support.traffic import times
from support.well import Left

FEW, MANY = 100, times(3_000, 100_000)
SAMPLE, TURNS, SENDERS = 100, 4, 8
ASYNC = {"prefer": "respond-async", "content-type": "application/json"}
BODY = json.dumps({"text": "x" * 900}).encode()
MOST_GROWTH = 24 << 20
"""Bytes by which the memory of a front may grow: the cache of SQLite, and what allocators hold back."""


class Front:
    """The front of a server whose only worker is busy, so that all further jobs wait."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.process = psutil.Process(server.process.pid)
        self.busy = server.client.post("/predict", json={"sleep": 3600}, headers=ASYNC).json()["id"]
        self.first = self.submitted(1)

    def submitted(self, count: int) -> str:
        """Submit jobs one after the other; the id of the last."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        name = ""
        for _ in range(count):
            connection.request("POST", "/predict", BODY, ASYNC)
            answer = connection.getresponse()
            assert answer.status == 202, answer.read()
            name = str(json.loads(answer.read())["id"])
        connection.close()
        return name

    def polled(self, count: int) -> None:
        """Ask for the oldest job that waits, again and again."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        for _ in range(count):
            connection.request("GET", f"/jobs/{self.first}")
            assert json.loads(connection.getresponse().read())["state"] in ("queued", "running")
        connection.close()

    def fill(self, count: int) -> None:
        """Submit many jobs, over several connections."""
        senders = [threading.Thread(target=self.submitted, args=(count // SENDERS,)) for _ in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()

    def cpu(self) -> float:
        """Microseconds of CPU that the front has used so far."""
        used = self.process.cpu_times()
        return (used.user + used.system) * 1e6

    def memory(self) -> int:
        return int(self.process.memory_info().rss)


def costs(fronts: tuple[Front, Front], work: Callable[[Front, int], object]) -> tuple[float, float]:
    """Microseconds of CPU for a request to each of the fronts, which take turns: a busy machine is busy for both."""
    used = [0.0, 0.0]
    for _ in range(TURNS):
        for number, front in enumerate(fronts):
            before = front.cpu()
            work(front, SAMPLE)
            used[number] += front.cpu() - before
    few, many = (total / (TURNS * SAMPLE) for total in used)
    return few, many


@pytest.mark.quiet
def test_jobs_that_wait_make_neither_submits_nor_polls_dearer_and_take_no_memory(tmp_path: Path) -> None:
    flags = ("--workers", "1", "--run-timeout", "7200", "--drain", "1", "--jobs")
    with (
        serving("job_steps", *flags, str(tmp_path / "few"), leaves=Left.REQUESTS) as beside,
        serving("job_steps", *flags, str(tmp_path / "many"), leaves=Left.REQUESTS) as server,
    ):
        fronts = Front(beside), Front(server)
        many = fronts[1]
        for front in fronts:
            front.submitted(FEW)
        memory = many.memory()
        many.fill(MANY)
        submits, polls = costs(fronts, Front.submitted), costs(fronts, Front.polled)
        grown = many.memory() - memory
        waiting = server.client.get("/jobs").json()["counts"]["queued"]
        for front in fronts:
            front.server.client.delete(f"/jobs/{front.busy}")
    print(
        f"{waiting} jobs wait, and {FEW} beside: a submit costs {submits[1]:.0f} us, and {submits[0]:.0f} beside, "
        f"a poll {polls[1]:.0f} and {polls[0]:.0f}; the front has {memory >> 20} MiB, and {grown / (1 << 20):.1f} more"
    )
    assert waiting >= MANY
    assert submits[1] < 2 * submits[0]
    assert polls[1] < 2 * polls[0]
    assert grown < MOST_GROWTH
