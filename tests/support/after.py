"""The check after every fault: the server is as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.server import Server, wait_until


@dataclass(frozen=True)
class Before:
    workers: int
    fds: int
    threads: int
    memory: int


def measure(server: Server) -> Before:
    own = server.own()
    return Before(
        len(server.workers()),
        sum(process.num_fds() for process in own),
        sum(process.num_threads() for process in own),
        sum(process.memory_info().rss for process in own),
    )


def is_well(server: Server, before: Before, normal: Any, expected: Any) -> None:
    """Alive, ready soon, twenty normal requests right, nothing more held than before."""
    assert server.client.get("/v2/health/live").status_code == 200
    wait_until(lambda: server.ready() == 200, message=lambda: f"not ready again:\n{server.log}")
    for _ in range(20):
        answer = server.predict(normal)
        assert answer.status_code == 200, answer.text
        assert answer.json() == expected
    wait_until(lambda: len(server.workers()) == before.workers, message=lambda: "worker count differs")
    wait_until(
        lambda: measure(server).fds <= before.fds + 1, message=lambda: f"fds: {before.fds} -> {measure(server).fds}"
    )
    now = measure(server)
    assert now.threads <= before.threads, f"threads: {before.threads} -> {now.threads}"
    assert now.memory - before.memory < 32 * 1024 * 1024, f"memory grew by {now.memory - before.memory} bytes"
    assert server.metric("panglot_queue_length") == 0
    assert server.metric("panglot_queue_bytes") == 0
    assert server.metric("panglot_requests_in_progress") == 0


@contextlib.contextmanager
def unharmed(server: Server, normal: Any, expected: Any) -> Iterator[Before]:
    """Run a fault inside this; afterwards the server must be well."""
    assert server.predict(normal).status_code == 200
    before = measure(server)
    yield before
    is_well(server, before, normal, expected)
