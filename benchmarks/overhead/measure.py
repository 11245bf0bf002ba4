"""Measuring: one contestant under load, panglot at rest, the start of the command line."""

from __future__ import annotations

import http.client
import resource
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from contestants import Contestant, UnavailableError
from load import LoadError, Scenario, run_wrk
from processes import CpuMeter, resident_mb, running, tree

START_SECONDS = 90.0
WARM_UP_SECONDS = 1
REST_SECONDS = 2.0


@dataclass(frozen=True)
class Sample:
    """One contestant in one round."""

    requests: int
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    front_us: float
    """Of the process that was started alone: the front, or all there is at the floor."""
    non_2xx: int
    socket_errors: int
    processes_lost: int

    @property
    def faults(self) -> int:
        return self.non_2xx + self.socket_errors + self.processes_lost


@dataclass(frozen=True)
class Idle:
    """Resident memory in MB of a panglot that has answered nothing yet."""

    front_mb: float
    worker_mb: float


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def exchange(
    port: int, method: str, path: str, scenario: Scenario | None = None, secret: str = ""
) -> tuple[int, bytes]:
    """One request on a connection of its own. Raises OSError or HTTPException."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    shown = {"Authorization": f"Bearer {secret}"} if secret else {}
    try:
        if scenario is None:
            connection.request(method, path, headers=shown)
        else:
            connection.request(method, path, scenario.body, {"Content-Type": scenario.content_type, **shown})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def await_status(
    process: subprocess.Popen[bytes], port: int, method: str, path: str, scenario: Scenario | None, secret: str = ""
) -> bytes:
    """Ask until the answer is 200. Raises UnavailableError with the last thing seen."""
    deadline = time.monotonic() + START_SECONDS
    seen = "no connection"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise UnavailableError(f"the server ended with {process.returncode} before it was ready")
        try:
            status, body = exchange(port, method, path, scenario, secret)
        except (OSError, http.client.HTTPException) as error:
            seen = f"{type(error).__name__}: {error}"
        else:
            if status == 200:
                return body
            seen = f"{status} {body[:200]!r}"
        time.sleep(0.05)
    raise UnavailableError(f"{method} {path} was not answered 200 within {START_SECONDS:.0f} s; last seen: {seen}")


def log_tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-12:]
    return "".join(f"\n    | {line[:200]}" for line in lines)


def measure(contestant: Contestant, scenario: Scenario, connections: int, seconds: int, scratch: Path) -> Sample:
    """Start the server, see that it echoes, warm it up, load it, stop it. Raises UnavailableError."""
    port = free_port()
    log = scratch / f"{contestant.name}.log"
    body = scratch / f"{scenario.name}.body"
    body.write_bytes(scenario.body)
    url = f"http://127.0.0.1:{port}{contestant.path}"
    try:
        with running(contestant.command_on(port, scratch), log, scratch) as process:
            if contestant.ready:
                await_status(process, port, "GET", contestant.ready, None)
            answer = await_status(process, port, "POST", contestant.path, scenario, contestant.secret)
            if not scenario.echoed(answer):
                raise UnavailableError(f"the answer is not the request: {answer[:200]!r}")
            run_wrk(url, body, scenario.content_type, connections, WARM_UP_SECONDS, secret=contestant.secret)
            meter = CpuMeter(process.pid)
            seen = run_wrk(url, body, scenario.content_type, connections, seconds, secret=contestant.secret)
            used = meter.read()
    except (UnavailableError, LoadError, OSError) as error:
        raise UnavailableError(f"{error}{log_tail(log) if log.exists() else ''}") from error
    return Sample(
        requests=seen.requests,
        requests_per_second=seen.requests / seen.seconds,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        cpu_us=used.seconds * 1e6 / max(seen.requests, 1),
        front_us=used.root * 1e6 / max(seen.requests, 1),
        non_2xx=seen.non_2xx,
        socket_errors=seen.socket_errors,
        processes_lost=used.ended,
    )


def measure_idle(contestant: Contestant, scratch: Path) -> Idle:
    """Memory of a front and of its largest child, ready and at rest. Raises UnavailableError."""
    port = free_port()
    log = scratch / "idle.log"
    try:
        with running(contestant.command_on(port, scratch), log, scratch) as process:
            await_status(process, port, "GET", contestant.ready or "/", None)
            time.sleep(REST_SECONDS)
            workers = [pid for pid, stat in tree(process.pid).items() if stat.parent == process.pid]
            if not workers:
                raise UnavailableError("the front has no worker process")
            return Idle(resident_mb(process.pid), max(resident_mb(pid) for pid in workers))
    except (UnavailableError, OSError) as error:
        raise UnavailableError(f"{error}{log_tail(log) if log.exists() else ''}") from error


def measure_help(panglot: tuple[str, ...]) -> float:
    """CPU seconds of `panglot --help`. Raises UnavailableError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run([*panglot, "--help"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"panglot --help: {error}") from error
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise UnavailableError(f"panglot --help ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
