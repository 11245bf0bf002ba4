"""Original servers of platforms: each in an environment of its own, beside Panglot on the same package and requests.

A test of a dialect says which packages of PyPI its original is, how it is started, and a table of cases:

    PYTHON = lambda: originals.interpreter("azmlinfsrv", "azureml-inference-server-http==1.5.1")

    with originals.running([PYTHON(), "-m", ..., "--port", originals.PORT], folder, ready="/") as original:
        answer = originals.ask(original.url, Case("GET", "/"))

Environments are made once and stored for later runs (`support.environments`); other versions make another one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from support import environments
from support.ports import free_port
from support.server import ROOT, wait_until

PORT = "{port}"
"""Stands for the port in the command and the variables of an original."""


def interpreter(name: str, *packages: str, base: str = sys.executable) -> str:
    """The interpreter of the environment called `name` that has these packages; other packages are another one."""
    wanted = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:8]
    version = "" if base == sys.executable else f"-{Path(base).name}"
    return environments.python_with(f"original-{name}{version}-{wanted}", *packages, base=base)


def program(python: str, name: str) -> str:
    """A program, such as `gunicorn`, of an interpreter's environment."""
    return str(Path(python).parent / name)


class Original:
    """A running server of a platform; its output is collected as lines."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str], port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.lines: list[str] = []
        environment = {key: text for key, text in os.environ.items() if not key.startswith(("PANGLOT_", "PYTHONPATH"))}
        environment |= {key: text.replace(PORT, str(port)) for key, text in env.items()}
        self.process = subprocess.Popen(
            [part.replace(PORT, str(port)) for part in command], cwd=folder, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def wait_ready(self, path: str, seconds: float) -> None:
        def is_ready() -> bool:
            assert self.process.poll() is None, f"the original ended:\n{self.log}"
            return httpx.get(self.url + path, timeout=5).status_code < 500

        wait_until(is_ready, seconds, lambda: f"the original is not ready:\n{self.log}")

    def ended(self, seconds: float = 60) -> int:
        """The exit code of one that ends by itself, when all that it wrote has been read."""
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def stop(self) -> None:
        """End the whole process group: an original may have workers of its own."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    ready: str = "/",
    env: Mapping[str, str] | None = None,
    seconds: float = 120,
) -> Iterator[Original]:
    """An original for the length of a test. `ready` is a path that answers once it serves; empty: nobody waits."""
    original = Original(command, folder, env or {}, free_port())
    try:
        if ready:
            original.wait_ready(ready, seconds)
        yield original
    finally:
        original.stop()


# Cases, and what is compared


@dataclass(frozen=True)
class Case:
    """One request of a table. `differs` names a row of "Deliberately different" on the dialect's page."""

    method: str
    path: str
    content: bytes | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of httpx, such as `files` or `json`."""
    differs: str = ""

    def __str__(self) -> str:
        about = self.content if self.content is not None else dict(self.options) or ""
        kind = self.headers.get("Content-Type", "")
        return " ".join(str(part)[:40] for part in (self.method, self.path, about, kind) if part)


@dataclass(frozen=True)
class Answer:
    """What a client sees: the status, the headers that matter, and the body, as JSON where it is JSON."""

    status: int
    headers: Mapping[str, tuple[str, ...]]
    body: Any


def ask(url: str, case: Case, headers: Sequence[str] = ("content-type",), token: str = "") -> Answer:
    """Send a case to a server; of the answer's headers those that are named are compared, every value of each."""
    given = {**case.headers, **({"Authorization": f"Bearer {token}"} if token else {})}
    response = httpx.request(
        case.method, url + case.path, content=case.content, headers=given, timeout=60, **case.options
    )
    values = {name: tuple(response.headers.get_list(name)) for name in headers}
    return Answer(response.status_code, values, body_of(response))


def body_of(response: httpx.Response) -> Any:
    try:
        return json.loads(response.content, parse_constant=lambda name: f"<{name}>")
    except ValueError:
        return response.content.decode("utf-8", "backslashreplace")


# Differences, which the dialect's page lists


@functools.cache
def listed(dialect: str) -> frozenset[str]:
    """What the table "Deliberately different" of docs/dialects/DIALECT.md names in its first column."""
    text = (ROOT / "docs" / "dialects" / f"{dialect}.md").read_text()
    section = text.partition("\n## Deliberately different")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    return frozenset(row for row in rows[1:] if row.strip("-: "))


def differs(dialect: str, name: str) -> str:
    """Name a difference that a test shows; the dialect's page must list it."""
    assert name in listed(dialect), f"docs/dialects/{dialect}.md does not list {name!r}"
    return name
