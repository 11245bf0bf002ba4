"""A worker's process on a node: its agent starts it, and learns of its end by a pidfd."""

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
from typing import Any, Callable, Dict, Mapping, Sequence

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
    """The environment of a script on a node: that of the node, without Ray's variables, and the front's variables.

    For libraries and devices the node's own variables win: the front's machine may have others.
    """
    own = {name: value for name, value in base.items() if not name.startswith(OURS)}
    if own.get("PYTHONBREAKPOINT", "").startswith("ray."):
        del own["PYTHONBREAKPOINT"]
    return {**own, **given, **{name: own[name] for name in OF_THE_NODE if name in own}}


class WorkerProcess:
    """A process that was started here. It owns its socket to the front; this object watches for its end."""

    def __init__(
        self,
        launch: Dict[str, Any],
        data: socket.socket,
        output: socket.socket,
        keys: bytes,
        ended: Callable[[WorkerProcess, int], None],
    ) -> None:
        """Start the process, on a thread that lives as long as the agent. Raises OSError."""
        # As long: the parent-death signal comes when the thread ends that has started the process.
        self.generation = int(launch["generation"])
        self.folders: Sequence[str] = ()
        """Its own folders on this node, which end with it."""
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
        """Send the process a signal; SIGKILL goes to its whole group."""
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
        """Kill the process and all processes it has started, also those in other sessions."""
        self.signal(signal.SIGKILL)
        # By their environment: a process that has left the group still carries the mark.
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
    """A pipe with a few bytes in it, to be read: in an environment, other processes could see them."""
    end, filled = os.pipe()
    os.write(filled, data)
    os.close(filled)
    return end


def relay(printed: int, output: socket.socket, native: OutputPipes) -> None:
    """Pass on a worker's output until no process holds the pipe. Waits for a slow reader, as a pipe does."""
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
    """The environment of a process. If it is just beginning a program, wait for the program's. Raises OSError.

    A process that a worker has just started has no environment for a moment: the kernel has released the worker's, and
    not yet set up the new one. Without the wait it would be taken for a foreign process, and outlive the worker.
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
