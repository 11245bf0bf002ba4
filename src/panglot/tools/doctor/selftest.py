"""Serve a package for a moment, as `panglot serve` would, and send it its own example."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.inputs.addresses import DOCUMENT, OPENAPI
from panglot.inputs.base import About
from panglot.inputs.curl_line import how_to, known_example
from panglot.inputs.documented import Example, example_of
from panglot.tools.doctor.finding import PROBLEM, WARNING, Finding

SECTION = "self-test"
LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
SEE_LOG = "the log below says more"
START_PATIENCE = 30.0
SPARE = 10.0
"""Seconds that are allowed beyond a time limit of the server."""


@dataclass
class ServerPlan:
    """The package to serve, and the time limits."""

    path: str
    folder: Path
    flags: list[str]
    token: bytes
    load_timeout: float
    timeout: float
    drain: float
    arguments: tuple[str, ...] = ()
    """Arguments of the script."""


@dataclass
class SelfTestResult:
    """The result of the self-test."""

    findings: list[Finding] = field(default_factory=list)
    loaded: bool = False
    log: list[str] = field(default_factory=list)

    def add(self, name: str, value: str, state: str = "ok", fix: str = "") -> None:
        self.findings.append(Finding(SECTION, name, value, state, fix))


class PanglotProcess:
    """A `panglot serve` process on a free port of this machine."""

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        self.log: list[str] = []
        ours = ["--host", "127.0.0.1", "--port", "0", "--log-format", "human", "--log-level", "info"]
        ours += ["--", *plan.arguments] if plan.arguments else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "panglot", "serve", os.path.abspath(plan.path), *plan.flags, *ours],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            # `extend` appends each line as it comes: `port` reads the list meanwhile, on another thread.
            self.log.extend(line.rstrip("\n") for line in lines)

    def port(self) -> int:
        """The port, once the server listens. Raises ServerGone."""
        for _ in self._until(START_PATIENCE):
            for line in list(self.log):
                match = LISTENING.search(line)
                if match:
                    return int(match[1])
        raise ServerGone("it does not listen")

    def wait_ready(self, port: int) -> None:
        """Wait until the package answers. Raises ServerGone."""
        for _ in self._until(self.plan.load_timeout + SPARE):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.send(port, "GET", "/v2/health/ready", {}, None, 5).status == 200:
                    return
        raise ServerGone("it does not get ready")

    def _until(self, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            yield
            time.sleep(0.02)

    def send(
        self, port: int, method: str, path: str, headers: dict[str, str], body: bytes | None, patience: float
    ) -> SelfTestReply:
        """Send one request to the server. Raises OSError and HTTPException."""
        if self.plan.token:
            headers = {**headers, "Authorization": f"Bearer {self.plan.token.decode('latin-1')}"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
        began = time.monotonic()
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read()
            took = time.monotonic() - began
            return SelfTestReply(response.status, response.getheader("Server-Timing") or "", content, took)

    def stop(self) -> int | None:
        """The exit code after SIGTERM; None when it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code: int | None = self.process.wait(self.plan.drain + SPARE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        # The last lines of the log may still be in the pipe, and they tell why the server ended.
        self._reader.join(2)
        return code


class ServerGone(Exception):
    """The server has ended, or was not ready in time."""


@dataclass(frozen=True)
class SelfTestReply:
    status: int
    timing: str
    body: bytes
    seconds: float


def run(plan: ServerPlan) -> SelfTestResult:
    """Serve the package, wait until it is ready, send its example, stop. Problems are findings, and never raised."""
    result = SelfTestResult()
    began = time.monotonic()
    server = PanglotProcess(plan)
    try:
        port = server.port()
        server.wait_ready(port)
        result.loaded = True
        result.add("ready", f"after {time.monotonic() - began:.1f} s")
        _send_example(server, port, result)
    except ServerGone as gone:
        # Stopped first: then the log is complete.
        server.stop()
        result.add("ready", last_words(server) or str(gone), PROBLEM, SEE_LOG)
    except (OSError, http.client.HTTPException, ValueError) as error:
        result.add("example", f"no answer: {type(error).__name__}: {error}", PROBLEM, SEE_LOG)
    finally:
        stopped = _stop(server)
    if result.loaded:
        result.findings.append(stopped)
    result.log = server.log
    return result


def _stop(server: PanglotProcess) -> Finding:
    began = time.monotonic()
    code = server.stop()
    if code == 0:
        return Finding(SECTION, "stop", f"after {time.monotonic() - began:.1f} s")
    how = "had to be killed" if code is None else f"ended with exit code {code}"
    return Finding(SECTION, "stop", f"the server {how}", WARNING, SEE_LOG)


def last_words(server: PanglotProcess) -> str:
    """The last line with an error in the server's log, without the word `error`; empty without one."""
    return next((line.removeprefix("error: ") for line in reversed(server.log) if line.startswith("error: ")), "")


def _send_example(server: PanglotProcess, port: int, result: SelfTestResult) -> None:
    # By its header Accept, this request gets Panglot's document, also where a platform has its own at this path.
    document = server.send(port, "GET", DOCUMENT, OPENAPI, None, SPARE)
    if document.status != 200:
        result.add("example", f"/openapi.json answers {document.status}", WARNING)
        return
    described = json.loads(document.body)
    about = _about(described)
    example = example_of(described, server.plan.folder) or _own_example(about, server.plan.folder)
    if example is None:
        result.add("example", "there is none, so nothing was sent", WARNING, how_to(about))
        return
    content_type, body = example.request.encoded()
    headers = {"Content-Type": content_type, **example.request.headers}
    reply = server.send(port, example.request.method, example.request.path, headers, body, server.plan.timeout + SPARE)
    _judge(example, reply, how_to(about), result)


def _about(document: dict[str, Any]) -> About:
    known = document.get("x-panglot") or {}
    return About(str(known.get("dialect", "")), str(known.get("path") or "/"), {}, known.get("api") or {})


def _own_example(about: About, folder: Path) -> Example | None:
    """A request made of the package's files: request.json, or a picture; None without any."""
    request = known_example(about, folder, math.inf)
    return None if request is None else Example(request, "a file of its folder", guessed=True)


def _judge(example: Example, reply: SelfTestReply, advice: str, result: SelfTestResult) -> None:
    value = f"POST {example.request.path} with {example.about}: {reply.status} in {reply.seconds * 1000:.1f} ms"
    if reply.status >= 400:
        state = WARNING if example.guessed and reply.status < 500 else PROBLEM
        shown = reply.body[:300].decode(errors="replace")
        fix = SEE_LOG if reply.status >= 500 else f"{advice}, with a request that the script accepts"
        result.add("example", f"{value}: {shown}", state, fix)
    else:
        result.add("example", value)
    if reply.timing:
        result.add("stages", _stages(reply.timing))


def _stages(timing: str) -> str:
    """A Server-Timing header in words: `queue;dur=0.045, total;dur=0.841` is `queue 0.045, total 0.841 ms`."""
    return timing.replace(";dur=", " ") + " ms"


def flags_of(given: dict[str, Any]) -> list[str]:
    """The options that were given on the command line, as words of another command line."""
    words = []
    for name, value in given.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            words.append(f"--{option}={value}")
    return words
