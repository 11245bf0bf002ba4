"""`kill -9` of the front at random moments: nothing accepted is lost, and no answer that was stored is computed again.

A round is 500 jobs and three kills, each after a random number of promises; a fourth life ends what is left. What a
server promised is what its clients heard; what ran is in a ledger that the script writes.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.receiver import Receiver, receiving
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import times

JOBS, KILLS, SENDERS = 500, 3, 4
LARGE = 100_000
"""Characters in a body that is stored as a file."""
BROKEN = (OSError, http.client.HTTPException)
"""What a client hears of a server that is killed."""


class Round:
    """The jobs of a round, and what clients were promised of them."""

    def __init__(self, folder: Path, chance: random.Random, receiver: Receiver) -> None:
        self.folder = folder
        self.chance = chance
        self.receiver = receiver
        self.ledger = folder / "runs"
        self.bodies = {name: self._body(name) for name in (f"job-{number}" for number in range(JOBS))}
        self.told = set(chance.sample(sorted(self.bodies), JOBS // 8))
        """Jobs whose ends a webhook is told."""
        self.unwanted = set(chance.sample(sorted(self.bodies), JOBS // 20))
        """Jobs that are cancelled as soon as they are accepted."""
        self.accepted: dict[str, str] = {}
        self.cancelled: set[str] = set()
        """Jobs whose cancelling was confirmed before they had ended."""
        self.erased: set[str] = set()
        """Jobs that had ended before they were cancelled, and those of which nobody heard."""
        self.answered: set[str] = set()
        """Ids of jobs whose answer was stored, as a client saw."""
        self.ran_before: Counter[str] = Counter()

    def _body(self, name: str) -> bytes:
        pad = "x" * (LARGE if self.chance.random() < 0.05 else 10)
        # Some take a while, so that a kill meets them while they run.
        sleep = 0.02 if self.chance.random() < 0.2 else 0
        return json.dumps({"name": name, "count": str(self.ledger), "sleep": sleep, "pad": pad}).encode()

    def flags(self) -> tuple[str, ...]:
        return "--workers", "2", "--jobs", str(self.folder / "jobs"), "--webhook-allow", self.receiver.host

    def runs(self) -> Counter[str]:
        return Counter(self.ledger.read_text().split()) if self.ledger.exists() else Counter()

    # One life of the server

    def live(self, life: int) -> None:
        """Serve, accept jobs, and be killed after a random number of them."""
        server = Server(PACKAGES / "job_steps", *self.flags())
        # A first life may end while the model is loading: jobs are accepted then too.
        if life:
            server.wait_ready()
        before = dict(self.accepted)
        fresh = [name for name in self.bodies if name not in before]
        # Also some that an earlier life accepted: the same key is the same job.
        repeats = self.chance.sample(sorted(before), len(before) // 4)
        names = self.chance.sample(fresh + repeats, len(fresh) + len(repeats))
        senders = [
            threading.Thread(target=self._send, args=(server.port, names[number::SENDERS])) for number in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        wanted = len(before) + self.chance.randrange(5, JOBS // KILLS)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: len(self.accepted) >= wanted or not any(map(threading.Thread.is_alive, senders)), 30)
        self._look(server)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
        for sender in senders:
            sender.join(60)
        server.close()
        assert before.items() <= self.accepted.items(), "a repeat was taken for another job"

    def _send(self, port: int, names: list[str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.suppress(*BROKEN):
            for name in names:
                headers = {"prefer": "respond-async", "idempotency-key": name, "content-type": "application/json"}
                if name in self.told:
                    headers["job-webhook"] = f"http://{self.receiver.host}/"
                status, job = asked(connection, "POST", "/predict", self.bodies[name], headers)
                assert status == 202, job
                self.accepted[name] = job["id"]
                if name in self.unwanted:
                    self._cancel(connection, name)
        connection.close()

    def _cancel(self, connection: http.client.HTTPConnection, name: str) -> None:
        self.erased.add(name)
        _, job = asked(connection, "DELETE", f"/jobs/{self.accepted[name]}")
        if job["state"] == "cancelled":
            self.cancelled.add(name)
            self.erased.discard(name)

    def _look(self, server: Server) -> None:
        """Remember whose answers are stored, and how often these have run."""
        with contextlib.suppress(httpx.HTTPError):
            done = server.client.get("/jobs", params={"state": "done", "limit": 200}).json()
            self.answered |= {job["id"] for job in done["jobs"]}
        self.ran_before = self.runs()

    # After the last life

    def check(self, server: Server) -> None:
        """Every promise is kept, once all that was accepted has ended."""
        counts: dict[str, int] = {}

        def have_ended() -> bool:
            counts.update(server.client.get("/jobs").json()["counts"])
            return counts.get("queued", 0) + counts.get("running", 0) == 0

        wait_until(have_ended, 120, lambda: f"{counts}\n{server.log}")
        assert sum(counts.values()) <= JOBS, "a key has two jobs"
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        ends = {name: self._end(connection, name, job) for name, job in self.accepted.items()}
        connection.close()
        assert {name for name, end in ends.items() if end == "cancelled"} >= self.cancelled
        given_up = [name for name, end in ends.items() if end == "failed"]
        assert len(given_up) <= 4, "more than can run at a time were running at all three kills"
        runs = self.runs()
        assert {name for name, end in ends.items() if end == "done"} <= set(runs)
        names = {job: name for name, job in self.accepted.items()}
        again = [names[job] for job in self.answered & names.keys() if runs[names[job]] != self.ran_before[names[job]]]
        assert not again, "computed again although their answers were stored"
        self._check_webhooks(ends)

    def _end(self, connection: http.client.HTTPConnection, name: str, job: str) -> str:
        """The last state of a job, whose answer is whole."""
        status, answer = asked(connection, "GET", f"/jobs/{job}/result")
        if status == 200:
            assert answer == {"echo": json.loads(self.bodies[name])}
            return "done"
        _, stored = asked(connection, "GET", f"/jobs/{job}")
        if stored["state"] == "failed":
            assert stored["error"]["code"] == "server_died", stored
        else:
            assert name in self.unwanted, (status, answer, stored)
        return str(stored["state"])

    def _check_webhooks(self, ends: dict[str, str]) -> None:
        words = {"done": "completed", "failed": "failed", "cancelled": "cancelled"}
        expected = {
            f"evt_{self.accepted[name]}_{words[ends[name]]}" for name in self.told - self.erased if name in ends
        }
        wait_until(lambda: expected <= {sent["webhook-id"] for sent, _ in self.receiver.events}, 120)
        bodies: dict[str, set[str]] = {}
        for sent, body in self.receiver.events:
            bodies.setdefault(sent["webhook-id"], set()).add(json.loads(body)["data"]["state"])
        # An event may come twice, but by its id its receiver can tell.
        assert all(len(states) == 1 for states in bodies.values()), bodies


def asked(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes = b"", headers: Any = None
) -> tuple[int, Any]:
    """Status and JSON of an answer. Raises one of BROKEN."""
    connection.request(method, path, body or None, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    return answer.status, json.loads(content) if content else None


@pytest.mark.parametrize("number", range(times(5, 50)))
def test_every_accepted_job_survives_kills_at_random_moments(number: int, tmp_path: Path) -> None:
    with receiving() as receiver:
        jobs = Round(tmp_path, random.Random(number), receiver)
        for life in range(KILLS):
            jobs.live(life)
        with serving("job_steps", *jobs.flags()) as server:
            jobs.check(server)
