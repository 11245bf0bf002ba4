"""A real `panglot serve` process under test."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from support import well
from support.descent import children, started
from support.two_fronts import FRONTS
from support.well import Left

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "tests" / "packages"
LISTENING = re.compile(r"listening on (https?)://(\S+):(\d+)")
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
SILENT = re.compile(r'^panglot_fronts\{state="silent"\} [1-9]', re.MULTILINE)
"""The figures are those of some fronts alone: one did not tell its own within half a second, as on a busy machine."""
PATIENCE = 3.0
"""Seconds for which the figures of all fronts are waited for. One of them may have been killed by its test."""


class Server:
    """Started with `--port 0`; its log is collected as lines."""

    def __init__(
        self,
        path: Path | str,
        *flags: str,
        env: dict[str, str] | None = None,
        largest_file: int = 0,
        before: Sequence[str] = (),
        python: str = sys.executable,
        command: str = "serve",
    ) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
        environment.update(env or {})
        if command == "serve":
            flags = (*further_fronts(flags, environment), *flags)
        self._has_fronts = says_fronts(flags, environment)
        self.token = token_of(flags, environment)
        self._clients: list[httpx.Client] = []
        self.lines: list[str] = []
        self._counted_before: dict[str, float] = {}
        """What counters were at when `begin_anew` was called."""
        self.log_is_read = threading.Event()
        """Cleared, nobody reads the log: as when it goes to a pager."""
        self.log_is_read.set()
        self._command = [python, "-m", "panglot", command, str(path), "--port", "0", *flags]
        self.process = subprocess.Popen(
            [*before, *self._command],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=environment,
            text=True,
            cwd=ROOT,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file,) * 2))
            if largest_file
            else None,
        )
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        found = self.wait_log(LISTENING, 60)
        self.port = int(found[3])
        self.url = f"{found[1]}://{ANY_ADDRESS.get(found[2], found[2])}:{self.port}"
        self.client = self.new_client()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self.lines.append(line.rstrip("\n"))
                self._heard.notify_all()
            self.log_is_read.wait()

    def _wait_line(self, known: int) -> None:
        """Wait for a line beyond those known, but not for long: the server may have ended."""
        with self._heard:
            self._heard.wait_for(lambda: len(self.lines) > known, 0.1)

    def new_client(self, **options: Any) -> httpx.Client:
        """A further client, closed with the server."""
        client = httpx.Client(base_url=self.url, timeout=30, verify=False, **options)
        self._clients.append(client)
        return client

    @property
    def log(self) -> str:
        """What has been heard so far. Only after `serving()` has ended it is all there: then ask what is not in it."""
        return "\n".join(self.lines)

    def log_after(self, line: int) -> str:
        return "\n".join(self.lines[line:])

    def wait_log(self, pattern: str | re.Pattern[str], seconds: float = 30, after: int = 0) -> re.Match[str]:
        """Wait until the log, from the given line on, holds the pattern."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            known = len(self.lines)
            found = re.search(pattern, self.log_after(after))
            if found is not None:
                return found
            if self.process.poll() is not None:
                self._reader.join(2)
                found = re.search(pattern, self.log_after(after))
                if found is not None:
                    return found
                break
            self._wait_line(known)
        raise AssertionError(f"{pattern!r} not in the log within {seconds} s:\n{self.log}")

    def wait_count(self, text: str, count: int, seconds: float = 30, after: int = 0) -> None:
        """Wait until the log, from the given line on, holds a text so often: a worker's words come after its answer.

        That it is not there more often, only the log of a server that has ended can tell.
        """
        wait_until(
            lambda: self.log_after(after).count(text) >= count,
            seconds,
            lambda: f"{text!r} not {count} times in the log within {seconds} s:\n{self.log}",
        )

    def change(self, write: Callable[[], object]) -> None:
        """Change a file of a package until `--reload` notices: watching begins some time after the server is ready."""
        mark = len(self.lines)

        def is_noticed() -> bool:
            write()
            with contextlib.suppress(AssertionError):
                return bool(self.wait_log(r"changed: .*; loading \S+ again", 2, after=mark))
            return False

        wait_until(is_noticed)

    def wait_ready(self, seconds: float = 90) -> Server:
        def is_ready() -> bool:
            assert self.process.poll() is None, f"ended instead of getting ready:\n{self.log}"
            return self.ready() == 200

        wait_until(is_ready, seconds, lambda: f"not ready:\n{self.log}")
        return self

    def ready(self) -> int:
        return self.client.get("/v2/health/ready").status_code

    def predict(self, value: Any = None, **options: Any) -> httpx.Response:
        if "content" in options or "files" in options or "data" in options:
            return self.client.post("/predict", **options)
        return self.client.post("/predict", json=value, **options)

    def metric(self, name: str, **labels: str) -> float:
        """The value of one series; 0 when it is not there."""
        for series, value in self._series():
            if series.partition("{")[0] == name and all(f'{key}="{text}"' in series for key, text in labels.items()):
                return value - self._counted_before.get(series, 0.0)
        return 0.0

    def _series(self) -> Iterator[tuple[str, float]]:
        for line in self._figures().splitlines():
            series, _, value = line.rpartition(" ")
            if not line.startswith("#"):
                yield series, float(value)

    def _figures(self) -> str:
        """The metrics of all fronts; of those that answer, where one does not for long."""
        until = time.monotonic() + PATIENCE
        while SILENT.search(text := self.client.get("/metrics").text) and time.monotonic() < until:
            time.sleep(0.05)
        return text

    def begin_anew(self) -> None:
        """Show log, counters and clients as if the server had just been started: another test has it from now on."""
        self.close_clients()
        self._clients.clear()
        self.client = self.new_client()
        self._counted_before = {
            series: value for series, value in self._series() if series.partition("{")[0].endswith("_total")
        }
        with self._heard:
            self.lines = []

    def fronts(self) -> list[psutil.Process]:
        """The live fronts of a server that has several: what its parent forked, in the order of their start.

        A worker that has been forked and not begun yet has the command of its front too.
        """
        if not self._has_fronts:
            return []
        command = self._command
        own = [child for child in self._children(self.process.pid) if _command(child) == command]
        return sorted(own, key=started)

    def own(self) -> list[psutil.Process]:
        """The server's own processes: the one that was started, and the fronts where there are several."""
        return [psutil.Process(self.process.pid), *self.fronts()]

    def workers(self) -> list[psutil.Process]:
        """The live worker processes, of all fronts."""
        # Listed before the fronts are: a front that is forked between the two would be taken for a worker.
        children = self._children(self.process.pid)
        fronts = self.fronts()
        children += [child for front in fronts for child in self._children(front.pid)]
        return [child for child in children if child not in fronts]

    def _children(self, pid: int) -> list[psutil.Process]:
        return [child for child in children(pid) if lives(child)]

    def family(self) -> list[psutil.Process]:
        return children(self.process.pid, recursive=True)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 40) -> int:
        """Signal the server and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not stop within {seconds} s:\n{self.log}") from None
        self.close()
        return code

    def close(self) -> None:
        """Let go of what we hold of a server that has ended."""
        self.log_is_read.set()
        self._reader.join(5)
        if self.process.stderr is not None:
            self.process.stderr.close()
        self.close_clients()

    def close_clients(self) -> None:
        """Close all clients: a server that stops would wait for their idle connections."""
        for client in self._clients:
            client.close()


@contextlib.contextmanager
def serving(
    path: Path | str,
    *flags: str,
    env: dict[str, str] | None = None,
    ready: bool = True,
    largest_file: int = 0,
    before: Sequence[str] = (),
    leaves: Left = Left.NOTHING,
    command: str = "serve",
) -> Iterator[Server]:
    """A server for the length of a test, which must leave no process, no memory and no fault behind.

    `before` is put before its command. `leaves` names what a test leaves behind all the same.
    """
    where = path if isinstance(path, Path) else PACKAGES / path
    server = Server(where, *flags, env=env, largest_file=largest_file, before=before, command=command)
    family: list[psutil.Process] = []
    try:
        if ready:
            server.wait_ready()
        yield server
        family = server.family()
        well.check(server, leaves)
    finally:
        server.close_clients()
        server.stop() if server.process.poll() is None else server.close()
    wait_until(lambda: not any(map(lives, family)), 15, lambda: f"left behind: {[*filter(lives, family)]}")


def further_fronts(flags: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
    """What has a server started with several fronts, where the tests are run so and the server says nothing of them."""
    says_it = says_fronts(flags, environment) or "--inline" in flags
    return () if says_it or not FRONTS else ("--fronts", FRONTS)


def says_fronts(flags: Sequence[str], environment: Mapping[str, str]) -> bool:
    return "--fronts" in flags or "PANGLOT_FRONTS" in environment


def token_of(flags: Sequence[str], environment: Mapping[str, str]) -> str:
    """The token by which a server started in this way shows its metrics."""
    for name in ("metrics-token", "token"):
        if f"--{name}-file" in flags:
            return Path(flags[flags.index(f"--{name}-file") + 1]).read_text().strip()
        if token := environment.get(f"PANGLOT_{name.upper().replace('-', '_')}", ""):
            return token
    return ""


def panglot(
    *arguments: str, env: dict[str, str] | None = None, seconds: float = 110
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PANGLOT_")}
    environment.update(env or {})
    return subprocess.run(
        [sys.executable, "-m", "panglot", *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment,
        cwd=ROOT,
        check=False,
    )


def wait_until(condition: Any, seconds: float = 30, message: Any = lambda: "it did not happen in time") -> None:
    """Wait for something that is asked for often at first, and then less and less so: asking has its price too."""
    deadline = time.monotonic() + seconds
    pause = 0.005
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if condition():
                return
        time.sleep(pause)
        pause = min(1.3 * pause, 0.05)
    raise AssertionError(message())


def lives(process: psutil.Process) -> bool:
    """Whether a process still runs; one that only waits to be collected does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []
