"""What a worker has started is known by a mark in its environment, where there are no control groups."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from panglot.engine.processes import family
from panglot_worker.node import worker_process

SLEEP = ["sleep", "300"]


def on_this_machine(pid: int, mark: str) -> bool:
    return f"{family.MARK}={mark}".encode() in family.environment_of(pid)


@pytest.mark.parametrize("is_marked", [on_this_machine, worker_process.is_marked], ids=["here", "on a node"])
def test_a_process_that_is_only_beginning_is_known(is_marked: Callable[[int, str], bool]) -> None:
    """While a process begins a program it has no environment; taken for a stranger it would outlive its worker."""
    for number in range(200):
        begun = subprocess.Popen(SLEEP, env={family.MARK: f"mark-{number}", "PATH": "/usr/bin:/bin"})
        known = is_marked(begun.pid, f"mark-{number}")
        begun.kill()
        begun.wait()
        assert known, f"not known at its start, the {number}th time"


def test_only_processes_with_the_mark_are_killed() -> None:
    own, other = (
        subprocess.Popen(SLEEP, env={worker_process.MARK: mark, "PATH": "/usr/bin:/bin"}) for mark in ("own", "other")
    )
    worker_process.kill_marked("own", 0)
    assert own.wait(10) < 0
    assert other.poll() is None
    other.kill()
    other.wait()
    assert not worker_process.is_marked(other.pid, "other")
