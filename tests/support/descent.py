"""Which processes a process has started.

psutil's own `children` compares times of start, and each of them is counted from a time of boot that may jump by a
second between two looks: a young child is then taken for a stranger.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict

import psutil


def children(process: psutil.Process | int, recursive: bool = False) -> list[psutil.Process]:
    """The children of a process, in no order; with `recursive` also theirs. None of a process that has gone."""
    by_parent: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for other in psutil.process_iter(["ppid"]):
        by_parent[other.info["ppid"]].append(other)
    below = list(by_parent[process if isinstance(process, int) else process.pid])
    if recursive:
        # The list grows while it is walked.
        for child in below:
            below += by_parent[child.pid]
    return below


def started(process: psutil.Process) -> float:
    """When a process was started, in seconds since the machine was; 0 when it has gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{process.pid}/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
        return ticks / os.sysconf("SC_CLK_TCK")
    return 0.0
