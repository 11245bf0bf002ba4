"""A worker's process and all its descendants: what a script starts ends with its worker, wherever it hides.

Killing the worker's process group takes most along, but a child that calls setsid is not in it, and a daemon is not
even a descendant. A control group holds them all. Where none can be made, this process adopts whoever loses its parent,
and a mark in the environment tells whose it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import secrets
import signal
import time
from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path

from panglot.machine import cgroups
from panglot.machine.temporary import locked_if_abandoned

MARK = "_PANGLOT_WORKER"
PREFIX = "panglot-worker-"
PR_SET_CHILD_SUBREAPER = 36
ROUNDS = 10
"""How often we look again for processes that were started while the others were being killed."""
ATTEMPTS = 10
"""How often a group is made that another server's `sweep` removes before it is locked."""
PATIENCE = 50
"""How often we try to remove a group, 10 ms apart."""
LONGEST_START, PAUSE = 0.5, 0.002
"""Seconds within which a process that begins a program shows its environment, and between two looks at it."""


class Family:
    """The control group of one worker. The worker is told its folder and enters it before it loads anything."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._group: Path | None = None
        self._lock = -1

    def create_group(self) -> str:
        """Make the control group and return its folder; empty when none can be made."""
        above = cgroups.own_group()
        if above is None or not os.access(above / "cgroup.procs", os.W_OK):
            return ""
        group = above / f"{PREFIX}{self.mark}"
        for _ in range(ATTEMPTS):
            try:
                group.mkdir()
                self._group = group
                # The worker hears of the group once it is locked: until then another server's `sweep` may remove it.
                self._lock = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                if (group / "cgroup.kill").exists():
                    return str(group)
            except FileNotFoundError:
                pass
            except OSError:
                break
            if group.exists():
                # The kernel is too old to kill groups.
                break
            self.remove()
        self.remove()
        self._group = None
        return ""

    def kill(self) -> None:
        """Kill the processes that are left once the worker itself has ended."""
        if self._group is not None:
            _kill_group(self._group)
            return
        for _ in range(ROUNDS):
            survivors = list(_marked(f"{MARK}={self.mark}".encode()))
            for pid in survivors:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not survivors:
                return

    def remove(self) -> bool:
        """Remove the group; False while one of its processes is still ending."""
        if self._lock >= 0:
            # Without the lock, the `sweep` of a later server removes the group if this one cannot.
            os.close(self._lock)
            self._lock = -1
        return self._group is None or _is_removed(self._group)

    def remove_soon(self) -> None:
        """Remove the group, waiting the moment that killed processes need to end."""
        _patiently(self.remove)


def adopt_orphans() -> None:
    """Make this process the parent of descendants that lose theirs, instead of the system's first process."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury_orphans(known: Container[int]) -> None:
    """Reap dead children that workers left behind: nobody else does, and each would stay in the table of processes.

    Not the known ones, and not what this process has started itself, such as nvidia-smi: whoever started it waits for
    it, and would not learn how it ended. Every worker begins a session, which its descendants can leave only for one
    of their own. So what is in our session is ours; the few that we give one of their own are among the known.
    """
    with contextlib.suppress(ChildProcessError, ProcessLookupError):
        own = os.getsid(0)
        while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if dead.si_pid in known or os.getsid(dead.si_pid) == own:
                # Not `continue`: the same process would be found again. Its owner reaps it, and the next tick goes on.
                return
            os.waitpid(dead.si_pid, os.WNOHANG)


def sweep() -> None:
    """Kill what is left of workers whose server was killed, as far as control groups tell. Waits a moment for each."""
    above = cgroups.own_group()
    for group in above.glob(PREFIX + "*") if above is not None else ():
        # Locked until it is gone: its server may have made it just now, and be about to put a worker into it.
        with contextlib.suppress(OSError), locked_if_abandoned(group) as abandoned:
            if abandoned:
                _kill_group(group)
                _patiently(partial(_is_removed, group))


def _is_removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def _patiently(attempt: Callable[[], bool]) -> None:
    for _ in range(PATIENCE):
        if attempt():
            return
        time.sleep(0.01)


def _kill_group(group: Path) -> None:
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1")


def _marked(mark: bytes) -> Iterator[int]:
    """Children of this process with the mark in their environment, and all their descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    waiting = [pid for pid in children.get(os.getpid(), []) if mark in environment_of(pid)]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name of the program, in parentheses, may hold anything.
                state = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2]
                yield int(name), int(state.split()[1])


def environment_of(pid: int) -> list[bytes]:
    """The environment of a process; of one that begins a program, that of the program. Empty when it has gone.

    A process that a worker has just started has no environment for a moment: the kernel has released that of the
    worker, and has not set up the new one. Taken for a stranger then, the process would outlive the worker.
    """
    deadline = time.monotonic() + LONGEST_START
    try:
        content, settled = _read(pid, "environ"), False
        while not content and not settled and _has_memory(pid) and time.monotonic() < deadline:
            # The kernel sets up the command line first: a process with one has its environment at the next look.
            settled = bool(_read(pid, "cmdline"))
            time.sleep(PAUSE)
            content = _read(pid, "environ")
    except OSError:
        return []
    return content.split(b"\0")


def _has_memory(pid: int) -> bool:
    """Whether a process has memory, which a zombie has not. Raises OSError when the process has gone."""
    return not _read(pid, "statm").startswith(b"0 ")


def _read(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()
