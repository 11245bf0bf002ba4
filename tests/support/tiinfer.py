"""tiinfer packages under test: served by Panglot, and by the platform's own server from PyPI."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from support import environments
from support.descent import children
from support.ports import free_port
from support.server import PACKAGES, ROOT, wait_until

ORIGINAL = ROOT / ".cache" / "tiinfer-original"
VERSIONS = ("tencent_tiinfer==0.1.5", "mosec==0.9.8")
LISTENING = re.compile(r"listening on http://\S+:(?P<port>\d+)")
PLATFORM_VARIABLES = ("TI_", "MOSEC_", "PANGLOT_")


@dataclass(frozen=True)
class Heard:
    """What a client hears: the status, and the body as JSON where it is JSON, else as text."""

    status: int
    body: Any


def heard(response: httpx.Response) -> Heard:
    try:
        body = json.loads(response.content, parse_constant=lambda name: f"<{name}>")
    except ValueError:
        body = response.text
    return Heard(response.status_code, body)


class Served:
    """A running server, ours or theirs, started in the package's folder as the platform does."""

    def __init__(self, command: Sequence[str], folder: Path, env: dict[str, str] | None, url: str = "") -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith(PLATFORM_VARIABLES)}
        environment |= env or {}
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=url or self._url(), timeout=30)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def _url(self) -> str:
        wait_until(lambda: LISTENING.search(self.log), 60, lambda: self.log)
        found = LISTENING.search(self.log)
        assert found is not None
        return f"http://127.0.0.1:{found['port']}"

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def wait_log(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        wait_until(lambda: re.search(pattern, self.log), seconds, lambda: f"{pattern!r} not in the log:\n{self.log}")
        found = re.search(pattern, self.log)
        assert found is not None
        return found

    def wait_ready(self) -> None:
        """Of ours only."""
        is_ready = lambda: self.client.get("/v2/health/ready").status_code == 200  # noqa: E731
        wait_until(is_ready, 60, lambda: f"not ready:\n{self.log}")

    def ask(self, value: Any = None, path: str = "/inference", **options: Any) -> Heard:
        options = options or {"json": value}
        return heard(self.client.post(path, **options))

    def ask_all(self, values: Sequence[Any]) -> list[Heard]:
        """All at once, each on a connection of its own; the answers in the order of the values."""
        with ThreadPoolExecutor(max(1, len(values))) as threads:
            return list(
                threads.map(lambda value: heard(httpx.post(self.url("/inference"), json=value, timeout=30)), values)
            )

    def url(self, path: str = "") -> str:
        return str(self.client.base_url).rstrip("/") + path

    def get(self, path: str, **headers: str) -> Heard:
        return heard(self.client.get(path, headers=headers))

    def metric(self, name: str, **labels: str) -> float:
        for line in self.client.get("/metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0] == name and all(f'{key}="{text}"' in series for key, text in labels.items()):
                return float(value)
        return 0.0

    def wait_open(self) -> None:
        """Of theirs: the port opens when all is loaded."""
        wait_until(lambda: self.client.get("/").status_code == 200, 30, lambda: f"not ready:\n{self.log}")

    def terminate(self) -> None:
        """Ask it to stop; a connection that is kept open would make it wait."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def stop(self, seconds: float = 30) -> int:
        self.terminate()
        return self.ended(seconds)

    def ended(self, seconds: float = 30) -> int:
        """The exit code, once it has ended by itself."""
        try:
            return self.process.wait(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._reader.join(2)
            if self.process.stdout is not None:
                self.process.stdout.close()


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "panglot", "tiinfer", *flags]


@contextlib.contextmanager
def ours(package: str | Path, *flags: str, env: dict[str, str] | None = None, ready: bool = True) -> Iterator[Served]:
    """`panglot tiinfer` in the package's folder; it must not leave a process behind."""
    folder = package if isinstance(package, Path) else PACKAGES / package
    port = () if "--port" in flags else ("--port", "0")
    server = Served(command(*port, *flags), folder, env)
    family: list[psutil.Process] = []
    try:
        if ready:
            server.wait_ready()
        yield server
        with contextlib.suppress(psutil.NoSuchProcess):
            family = children(server.process.pid, recursive=True)
    finally:
        server.stop()
    assert not psutil.wait_procs(family, timeout=5)[1], "processes left behind"


@contextlib.contextmanager
def theirs(package: str | Path, *flags: str, env: dict[str, str] | None = None, ready: bool = True) -> Iterator[Served]:
    """`python -m tiinfer` of the platform in the package's folder."""
    folder = package if isinstance(package, Path) else PACKAGES / package
    port = free_port()
    flags = ("--port", str(port), "--address", "127.0.0.1", *flags)
    server = Served([str(original()), "-m", "tiinfer", *flags], folder, env, f"http://127.0.0.1:{port}")
    try:
        if ready:
            server.wait_open()
        yield server
    finally:
        server.stop()


def original() -> Path:
    """The interpreter of an environment with the platform's own packages, made once."""
    python = ORIGINAL / "bin" / "python"
    complete = ORIGINAL / "complete"
    wanted = " ".join(VERSIONS)
    ORIGINAL.parent.mkdir(exist_ok=True)
    with ORIGINAL.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists() or complete.read_text() != wanted:
            shutil.rmtree(ORIGINAL, ignore_errors=True)
            environments.install(environments.fresh(ORIGINAL), *VERSIONS)
            complete.write_text(wanted)
    return python


def run(*arguments: str, folder: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`panglot` with these arguments to its end, in a folder."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith(PLATFORM_VARIABLES)}
    return subprocess.run(
        [sys.executable, "-m", "panglot", *arguments], cwd=folder, env=environment | (env or {}),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def model(*methods: str, load: str = "return True", name: str = "Own", before: str = "") -> str:
    """A script with one model. Methods are written as `predict: return request`."""
    lines = ["import tiinfer", before, f"class {name}(tiinfer.Model):", "    def load(self):", f"        {load}"]
    for method in methods:
        signature, _, body = method.partition(": ")
        signature = signature if "(" in signature else f"{signature}(self, request)"
        lines += [f"    def {signature}:", f"        {body}"]
    return "\n".join(lines) + "\n"


def workers(*classes: str, **appended: str) -> str:
    """A script with mosec workers, each written as `Name: return data` or in full, and how they are appended."""
    lines = ["import os, time", "import mosec, tiinfer"]
    for text in classes:
        name, _, body = text.partition(": ")
        if name.isidentifier():
            text = f"class {name}(mosec.Worker):\n    def forward(self, data):\n        {body}"
        lines.append(text)
    lines += [f"tiinfer.append_worker({name}{', ' if more else ''}{more})" for name, more in appended.items()]
    return "\n".join(lines) + "\n"


def write(folder: Path, text: str, **files: str) -> Path:
    """A package of one script, with the import in place."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_service.py").write_text(text)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]
