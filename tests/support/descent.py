"""Which processes a process has started.

psutil cannot tell. Its `children` compares times of start, and each of them is counted from a time of boot that may
jump by a second between two looks: a young child is then taken for a stranger. Its `process_iter` remembers processes
by their number, and leaves out once a process that has the number of an earlier one.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict

import psutil


def children(process: psutil.Process | int, recursive: bool = False) -> list[psutil.Process]:
    """The children of a process, in no order; with `recursive` also theirs. None of a process that has gone."""
    by_parent: defaultdict[int, list[int]] = defaultdict(list)
    for pid in psutil.pids():
        fields = _stat(pid)
        if fields:
            by_parent[int(fields[1])].append(pid)
    below = list(by_parent[process if isinstance(process, int) else process.pid])
    if recursive:
        # The list grows while it is walked.
        for pid in below:
            below += by_parent[pid]
    found: list[psutil.Process] = []
    for pid in below:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def zombies(pid: int) -> list[psutil.Process]:
    """Children of a process that have ended and were not waited for; one that has gone meanwhile is none."""
    left = []
    for child in children(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                left.append(child)
    return left


def started(process: psutil.Process) -> float:
    """When a process was started, in seconds since the machine was; 0 when it has gone."""
    fields = _stat(process.pid)
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat(pid: int) -> list[str]:
    """What the kernel tells of a process, behind its name; nothing of one that has gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return []
