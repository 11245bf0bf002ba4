"""NVIDIA's MPS for workers that share a card: the work of several processes runs there side by side, not in turns."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from panglot.errors import StartError
from panglot.machine.temporary import Temporary

CONTROL = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
PR_SET_PDEATHSIG = 1
START, STOP = 10.0, 5.0
"""Seconds that it may take to start, and to stop."""

log = logging.getLogger("panglot")


def is_there() -> bool:
    """Whether this machine has MPS to start."""
    return shutil.which(CONTROL) is not None


def elsewhere() -> str:
    """The folder by which processes find an MPS that somebody else has started; empty: there is none."""
    folder = os.environ.get(PIPES, "")
    return folder if folder and Path(folder, "control").exists() else ""


@contextlib.contextmanager
def running(wanted: bool) -> Iterator[None]:
    """Have MPS while the block runs, if it is wanted: every worker started in it finds it. Raises StartError."""
    if not wanted:
        yield
        return
    if elsewhere():
        log.info("MPS runs already, found by %s: workers that share a GPU use it", PIPES)
        yield
        return
    folder = Temporary("panglot-mps-")
    before = {name: os.environ.get(name) for name in (PIPES, LOGS)}
    try:
        os.environ.update({PIPES: str(folder.path()), LOGS: str(folder.path())})
        daemon = _started(folder.path())
        log.info("MPS started (pid %d): workers that share a GPU use it side by side", daemon.pid)
        try:
            yield
        finally:
            _stop(daemon)
            log.info("MPS stopped")
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        folder.close()


def _started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the daemon, which ends with this process in whatever way that ends. Raises StartError."""
    program = shutil.which(CONTROL)
    if program is None:
        raise StartError(f"--mps: {CONTROL} is not on this machine", fix="install NVIDIA's driver, or leave out --mps")
    daemon = subprocess.Popen(
        [program, "-f"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=_die_with_parent, process_group=0,
    )  # fmt: skip
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if daemon.poll() is not None:
            raise StartError(f"--mps: {CONTROL} did not start: {_last_line(daemon)}", fix="leave out --mps")
        if (folder / "control").exists():
            return daemon
        time.sleep(0.02)
    _stop(daemon)
    raise StartError(f"--mps: {CONTROL} was not ready after {START:g} s", fix="leave out --mps")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _last_line(daemon: subprocess.Popen[bytes]) -> str:
    output = daemon.communicate()[0].decode("utf-8", "replace").strip()
    return output.rpartition("\n")[2] or f"exit code {daemon.returncode}"


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    """Ask the daemon to quit, with its servers; kill all of them when it does not."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([CONTROL], input=b"quit\n", capture_output=True, timeout=STOP, check=False)
        daemon.wait(STOP)
    if daemon.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
    if daemon.stdout is not None:
        daemon.stdout.close()
