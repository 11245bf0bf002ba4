"""A worker's process on a node, as its agent starts and watches it: its end is noticed by a pidfd."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Mapping

from panglot_worker.life import loader
from panglot_worker.life.output_pipes import OutputPipes

MARK = "_PANGLOT_WORKER"
OURS = ("RAY_", "PANGLOT_", "SPT_NOENV")
OF_THE_NODE = ("LD_LIBRARY_PATH", "DEVICE_ID")
ROUNDS = 10
"""How many times we look for processes that were started while we killed the others."""
LONGEST_START, PAUSE = 0.5, 0.002
"""Seconds within which a process that begins a program shows its environment, and between two looks at it."""
PIECE = 65536


def environment(base: Mapping[str, str], given: Mapping[str, str]) -> Dict[str, str]:
    """The environment of a script on a node: the node's own without what Ray put there, and what the front gives.

    Where the libraries and devices of the node are, the node knows better.
    """
    own = {name: value for name, value in base.items() if not name.startswith(OURS)}
    if own.get("PYTHONBREAKPOINT", "").startswith("ray."):
        del own["PYTHONBREAKPOINT"]
    return {**own, **given, **{name: own[name] for name in OF_THE_NODE if name in own}}


class WorkerProcess:
    """A process that was started here. It owns its socket to the front; this record knows when it ends."""

    def __init__(
        self,
        launch: Dict[str, Any],
        data: socket.socket,
        output: socket.socket,
        keys: bytes,
        ended: Callable[[WorkerProcess, int], None],
    ) -> None:
        """Start the process, on a thread that lives as long as the agent. Raises OSError."""
        self.generation = int(launch["generation"])
        self.run_folder = ""
        self.mark = secrets.token_hex(8)
        self._ended = ended
        life_read, self._life = os.pipe()
        printed, print_end = os.pipe()
        native = OutputPipes(bool(launch["native_output"]))
        keys_read = piped(keys)
        retained = int(launch.get("retained_file", -1))
        python = str(launch["python"] or sys.executable)
        code = loader.code(*launch["entry"])
        variables = {MARK: self.mark, loader.RETAINED: str(retained), **native.environment}
        files = (data.fileno(), life_read, keys_read, *((retained,) if retained >= 0 else ()), *native.files)
        try:
            self.process = subprocess.Popen(
                [python, "-u", "-c", code, str(launch["worker"]), str(data.fileno()), str(life_read), str(keys_read)],
                cwd=str(launch["folder"]),
                env={**environment(os.environ, launch["environment"]), **variables},
                stdin=subprocess.DEVNULL,
                stdout=print_end,
                stderr=print_end,
                pass_fds=files,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._life)
            os.close(printed)
            native.close()
            raise
        finally:
            # Only the worker may hold these ends: `relay` ends when the last process that could print is gone.
            os.close(life_read)
            os.close(print_end)
            os.close(keys_read)
            native.given()
        self._pidfd = os.pidfd_open(self.process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_exit)
        self._relay = threading.Thread(target=relay, args=(printed, output, native), daemon=True)
        self._relay.start()

    def signal(self, number: int) -> None:
        """Signal the process; where it is to be killed, its whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                os.kill(self.process.pid, number)

    def _on_exit(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        # Kill first, reap after: until `wait`, the number of the process group cannot be given to another.
        self.end()
        self._ended(self, self.process.wait())

    def end(self) -> None:
        """Kill the process and whatever it has started, wherever that hides."""
        self.signal(signal.SIGKILL)
        kill_marked(self.mark, self.process.pid)
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def memory(self) -> int:
        """Resident bytes without those shared with others; 0 when the process has gone."""
        with contextlib.suppress(OSError, ValueError), open("/proc/%d/status" % self.process.pid) as file:
            sizes = {line.partition(":")[0]: line.split()[1] for line in file if line.startswith(("VmRSS", "RssShmem"))}
            return (int(sizes.get("VmRSS", 0)) - int(sizes.get("RssShmem", 0))) * 1024
        return 0


def piped(data: bytes) -> int:
    """The end of a pipe that a few bytes can be read from: nobody sees them, as they would in an environment."""
    end, filled = os.pipe()
    os.write(filled, data)
    os.close(filled)
    return end


def relay(printed: int, output: socket.socket, native: OutputPipes) -> None:
    """Pass on what a worker prints until all that could print have ended. Waits for a slow reader, as a pipe does."""
    with contextlib.suppress(OSError):
        while True:
            data = os.read(printed, PIECE)
            if not data:
                break
            output.sendall(data)
        output.sendall(native.last_words())
    native.close()
    os.close(printed)
    output.close()


def processes() -> Any:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def kill_marked(mark: str, worker: int) -> None:
    """Kill all processes that carry the mark of a worker, but for the worker itself."""
    for _ in range(ROUNDS):
        left = [pid for pid in processes() if pid != worker and is_marked(pid, mark)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        # A process may have forked while we killed, so that one look without any is needed to be sure.
        if not left:
            return


def is_marked(pid: int, mark: str) -> bool:
    """Whether a process carries the mark of a worker in its environment."""
    try:
        return ("%s=%s" % (MARK, mark)).encode() in environment_of(pid).split(b"\0")
    except OSError:
        return False


def environment_of(pid: int) -> bytes:
    """The environment of a process; of one that begins a program, that of the program. Raises OSError.

    A process that a worker has just started has no environment for a moment: the kernel has released that of the
    worker, and has not set up the new one. Taken for a stranger then, the process would outlive the worker.
    """
    deadline = time.monotonic() + LONGEST_START
    content, settled = read(pid, "environ"), False
    while not content and not settled and has_memory(pid) and time.monotonic() < deadline:
        # The kernel sets up the command line first: a process with one has its environment at the next look, or none.
        settled = bool(read(pid, "cmdline"))
        time.sleep(PAUSE)
        content = read(pid, "environ")
    return content


def has_memory(pid: int) -> bool:
    """Whether a process has memory: False for zombies and kernel threads. Raises OSError when it has gone."""
    return not read(pid, "statm").startswith(b"0 ")


def read(pid: int, name: str) -> bytes:
    with open("/proc/%d/%s" % (pid, name), "rb") as file:
        return file.read()
