"""A store of jobs without a server, whose commands a test waits for."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

from panglot.jobs.job import DONE, JobLimits, JobOutcome, JobTrouble, NewJob, new_id
from panglot.jobs.storage.store import JobStore

MANY = JobLimits(1_000_000, 10 << 30, 1_000_000)


class Opened:
    """A store whose commands a test waits for."""

    def __init__(self, path: Path | None, limits: JobLimits = MANY, synchronous: str = "FULL") -> None:
        self.store = JobStore(path, limits, synchronous=synchronous)
        self.report = self.store.open()

    def submit(self, body: bytes = b"{}", **more: Any) -> Any:
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.store.submit(new_job(body, **more), answer.put)
        return checked(answer.get(timeout=60))

    def write(self, name: str, *arguments: Any) -> Any:
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.store.write(name, *arguments, then=answer.put)
        return checked(answer.get(timeout=60))

    def read(self, name: str, *arguments: Any) -> Any:
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.store.read(name, *arguments, then=answer.put)
        return checked(answer.get(timeout=60))

    def run(self, body: bytes = b"ok") -> Any:
        """Run the next job to its end."""
        (claimed,) = self.write("claim", "m", 1)
        return self.write("finish", claimed.job.seq, claimed.job.attempts, JobOutcome(DONE, 200, b"text/plain", body))


def new_job(body: bytes, **more: Any) -> NewJob:
    return NewJob(**{"id": new_id(), "model": "m", "route": "/predict", "head": b"head", "body": body, **more})


def checked(result: Any) -> Any:
    if isinstance(result, JobTrouble):
        raise result
    return result
