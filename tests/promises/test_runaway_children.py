"""The promise: what a script starts ends with its worker and with the server, also when it left the worker's session
or became a daemon."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.descent import zombies
from support.server import Server, serving, wait_until

KINDS = ("session", "daemon", "grandchild")
HIDE = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
"""No control group can be made where none is seen."""


def can_group() -> bool:
    """Whether a server started from here can make control groups."""
    from panglot.machine.cgroups import own_group

    own = own_group()
    return own is not None and os.access(own, os.W_OK) and (own / "cgroup.procs").exists()


@pytest.fixture(params=["groups", "marks"])
def before(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Both ways to find them."""
    if request.param == "groups":
        if not can_group():
            pytest.skip("this machine lets no test make a control group")
        yield []
        return
    if not shutil.which("unshare") or subprocess.run([*HIDE, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets no process have mounts of its own")
    yield HIDE


def started(server: Server, kinds: tuple[str, ...] = KINDS) -> list[psutil.Process]:
    children = [psutil.Process(server.predict([kind, "300"]).json()) for kind in kinds]
    assert all(process.is_running() for process in children)
    return children


def gone(processes: list[psutil.Process]) -> bool:
    def is_gone(process: psutil.Process) -> bool:
        try:
            return process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return all(is_gone(process) for process in processes)


def test_they_end_with_their_worker_and_with_the_server(before: list[str]) -> None:
    with serving("runaway", before=before) as server, serving("runaway", before=before) as other:
        theirs = started(other)
        children = started(server)
        server.predict("die")
        wait_until(lambda: gone(children), 20, lambda: f"alive after an exit: {children}")
        children = started(server)
        wait_until(lambda: server.predict(["daemon", "0"]).status_code == 200)
        for worker in [one for one in server.workers() if one not in children]:
            worker.kill()
        wait_until(lambda: gone(children), 20, lambda: f"alive after a kill: {children}")
        wait_until(lambda: server.predict(["daemon", "0"]).status_code == 200, 20)
        front = server.process.pid
        wait_until(lambda: not zombies(front), 10, lambda: f"nobody waited for {zombies(front)}")
        children = started(server)
        assert server.stop() == 0
        wait_until(lambda: gone(children), 10, lambda: f"alive after a stop: {children}")
        assert not any(gone([process]) for process in theirs), "those of another server live on"


def test_groups_take_along_whoever_hides_and_leave_nothing() -> None:
    if not can_group():
        pytest.skip("this machine lets no test make a control group")
    with serving("runaway") as server:
        children = started(server, ("bare",))
        (group,) = groups_of(server)
        server.predict("die")
        wait_until(lambda: gone(children), 20)
        assert server.stop() == 0
        assert not group.exists()


def test_what_a_killed_server_left_ends_when_the_next_starts() -> None:
    if not can_group():
        pytest.skip("this machine lets no test make a control group")
    with serving("runaway") as server:
        children = started(server)
        groups = groups_of(server)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(10)
    with serving("runaway"):
        wait_until(lambda: gone(children), 20, lambda: f"alive: {children}")
        wait_until(lambda: not any(group.exists() for group in groups))


def groups_of(server: Server) -> list[Path]:
    """The control groups of the server's workers."""
    from panglot.machine.cgroups import own_group

    above = own_group()
    assert above is not None
    pids = {str(worker.pid) for worker in server.workers()}
    found = []
    for group in above.glob("panglot-worker-*"):
        # Those of other servers beside this one come and go.
        with contextlib.suppress(OSError):
            if pids & set((group / "cgroup.procs").read_text().split()):
                found.append(group)
    assert found
    return found
