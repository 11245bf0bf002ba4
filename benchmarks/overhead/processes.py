"""Server processes: start, stop, and read CPU time and memory of a whole process tree from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
GRACE_SECONDS = 3.0


@dataclass(frozen=True)
class Stat:
    """What /proc/PID/stat says: the parent, the start (tells a reused pid) and CPU ticks.

    `ticks` holds the user and system time of the process and of the children it has reaped. A child that
    ends moves its ticks to its parent, so the sum over a tree neither loses nor doubles them.
    """

    ended: bool
    parent: int
    session: int
    start: int
    ticks: int


def read_stat(pid: int) -> Stat | None:
    """None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the command name may hold blanks and brackets
    return Stat(
        ended=fields[0] in "ZX",
        parent=int(fields[1]),
        session=int(fields[3]),
        start=int(fields[19]),
        ticks=sum(map(int, fields[11:15])),
    )


def tree(root: int) -> dict[int, Stat]:
    """The process, its session (which orphans stay in) and all descendants."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    stats = {pid: stat for pid in pids if (stat := read_stat(pid)) is not None}
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        children.setdefault(stat.parent, []).append(pid)
    found: dict[int, Stat] = {}
    waiting = [pid for pid, stat in stats.items() if root in (pid, stat.session)]
    while waiting:
        pid = waiting.pop()
        found[pid] = stats[pid]
        waiting.extend(children.get(pid, ()))
    return found


def same(members: Mapping[int, Stat]) -> dict[int, Stat]:
    """Those that are still there, as they are now; a pid taken over by another process is not."""
    found = {pid: read_stat(pid) for pid in members}
    return {pid: now for pid, now in found.items() if now and now.start == members[pid].start}


def alive(members: Mapping[int, Stat]) -> list[int]:
    return [pid for pid, now in same(members).items() if not now.ended]


class CpuUse(NamedTuple):
    """CPU seconds of a process tree, those of its root alone, and how many of its processes have ended."""

    seconds: float
    root: float
    ended: int


class CpuMeter:
    """CPU seconds a process tree uses from now on."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._before = tree(root)

    def read(self) -> CpuUse:
        """What has been used since the start."""
        after = tree(self._root)
        for pid, now in same(self._before).items():
            after.setdefault(pid, now)  # its parent has ended: it left the tree but still counts
        used = sum(stat.ticks for stat in after.values()) - sum(stat.ticks for stat in self._before.values())
        root = after[self._root].ticks - self._before[self._root].ticks if self._root in after else 0
        ended = len(self._before) - len(alive(self._before))
        return CpuUse(used / TICKS_PER_SECOND, root / TICKS_PER_SECOND, ended)


def resident_mb(pid: int) -> float:
    """Resident memory in MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(f"process {pid} has no memory: it has ended")


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for the length of the block; nothing of its tree is left afterwards."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PANGLOT_", "MOSEC_"))}
    env["TMPDIR"] = str(scratch)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the server to end; after the grace period end whatever is left of its tree."""
    members = tree(process.pid)
    process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        process.poll()
        if not alive(members):
            return
        time.sleep(0.02)
    for pid in alive({**members, **tree(process.pid)}):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
