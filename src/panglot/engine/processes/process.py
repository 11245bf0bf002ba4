"""Starting a worker process, and ending it with all its children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from panglot_worker.life import loader
from panglot_worker.life.output_pipes import OutputPipes

OWN_FAULTS = (
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSYS,
    signal.SIGTRAP,
)
"""Signals that a process raises by what it does. Others, such as SIGKILL and SIGTERM, come from elsewhere."""

WORKER = loader.code("panglot_worker.life.loop", "start")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def worker_folder() -> str:
    import panglot_worker

    return str(Path(panglot_worker.__path__[0]).resolve())


@dataclass(frozen=True)
class Started:
    """A process just started: our end of its socket, the pipe that kills it when it closes, its output, its pidfd."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    life_fd: int
    output_fd: int
    pidfd: int


def start(
    python: str, folder: Path, environment: Mapping[str, str], native: OutputPipes, files: tuple[int, ...] = ()
) -> Started:
    """Start a worker in its own session. It also gets the open files `files`, under the same numbers.

    Must be called on the main thread: the parent-death signal watches it. Raises OSError when it cannot be started;
    nothing is left open then.
    """
    with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as given_away:
        # The worker's ends are closed here in any case: with copies of them here, its death would not end the streams.
        on_failure.callback(native.close)
        given_away.callback(native.given)
        ours, theirs = socket.socketpair()
        on_failure.callback(ours.close)
        given_away.callback(theirs.close)
        life_read, life_write = os.pipe()
        on_failure.callback(os.close, life_write)
        given_away.callback(os.close, life_read)
        output_read, output_write = os.pipe()
        on_failure.callback(os.close, output_read)
        given_away.callback(os.close, output_write)
        process = subprocess.Popen(
            [python or sys.executable, "-u", "-c", WORKER, worker_folder(), str(theirs.fileno()), str(life_read)],
            cwd=folder,
            env={**environment, **native.environment},
            stdin=subprocess.DEVNULL,
            stdout=output_write,
            stderr=output_write,
            pass_fds=(theirs.fileno(), life_read, *native.files, *files),
            # A process group of its own, for `kill_group`; and a session, by which `bury_orphans` knows descendants.
            start_new_session=True,
        )
        # Callbacks run in reverse order: the group is killed first, then waited for.
        on_failure.callback(process.wait)
        on_failure.callback(kill_group, process)
        pidfd = os.pidfd_open(process.pid)
        on_failure.pop_all()
    ours.setblocking(False)
    return Started(process, ours, life_write, output_read, pidfd)


def kill_group(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    """Signal the worker and its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def memory(pid: int) -> int:
    """Resident bytes of a process without those it shares with others; 0 when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)
             if name in ("VmRSS", "RssShmem")}  # fmt: skip
    return sizes.get("VmRSS", 0) - sizes.get("RssShmem", 0)


def environment(base: Mapping[str, str], *, threads: int, device: str, pixels: int) -> dict[str, str]:
    """The environment of a worker: `base` without the server's own variables and secrets, plus limits for libraries."""
    result = {key: value for key, value in base.items() if not key.startswith("PANGLOT_")}
    for name in THREAD_VARIABLES:
        result.setdefault(name, str(threads))
    result.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(pixels))
    if device:
        result["PANGLOT_DEVICE"] = device
        result["CUDA_VISIBLE_DEVICES"] = device.partition(":")[2] if device.startswith("cuda") else ""
    return result


def ended_itself(returncode: int | None) -> bool:
    """Whether a process caused its own end. One that was killed, also for want of memory, may not have."""
    return returncode is not None and (returncode >= 0 or -returncode in OWN_FAULTS)


def cause(returncode: int | None) -> str:
    """How a process ended, in words."""
    if returncode is None:
        return "closed its socket"
    if returncode < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-returncode).name}"
        return f"was killed by signal {-returncode}"
    return f"ended with exit code {returncode}"
