"""How many requests a server with many workers answers, beside mosec, in interleaved rounds.

It measures and never asserts: the exit code is 0, or 2 when something could not run. Run it on a machine with more
cores than workers; elsewhere only the CPU time per request says something.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "overhead"))

from contestants import panglot_command, python_folder  # noqa: E402
from load import LoadError, Scenario, run_wrk, scenarios  # noqa: E402
from measure import await_status, exchange, free_port, log_tail  # noqa: E402
from peers import MOSEC, UnavailableError, install  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

WORKERS = 10
WARM_UP_SECONDS = 2
START_SECONDS = 90.0


@dataclass(frozen=True)
class Contestant:
    """A server: its command, in which `{port}` stands for the port, and the path that it answers."""

    name: str
    command: tuple[str, ...]
    path: str
    has_status: bool
    """Whether `/status.json` says how many of its workers are ready."""


@dataclass(frozen=True)
class Sample:
    """One contestant in one round."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    front_us: float
    front_busy: float
    """CPU seconds of the process that was started, in a second."""
    faults: int


def mosec_python() -> str:
    """A Python that has mosec: this one, else one that is installed on first use. Raises UnavailableError."""
    if importlib.util.find_spec("mosec") is not None:
        return sys.executable
    install(MOSEC, str(python_folder() / "python"))
    return str(MOSEC.environment / "bin" / "python")


def contestants(options: argparse.Namespace, failures: dict[str, str]) -> list[Contestant]:
    """Panglot, Panglot without the next call ahead, another Panglot if one is given, and mosec if there is one."""
    package = str(HERE / "packages" / "half_millisecond")
    address = ("--host", "127.0.0.1", "--port", "{port}")
    flags = ("serve", package, "--workers", str(options.workers), *address)
    panglot = panglot_command(options.panglot)
    found = [
        Contestant("panglot", (*panglot, *flags), "/predict", True),
        Contestant("panglot --no-ahead", (*panglot, *flags, "--no-ahead"), "/predict", True),
    ]
    if options.before:
        found.append(Contestant("before", (*shlex.split(options.before), *flags), "/predict", True))
    if options.only and "mosec" not in options.only.split(","):
        return chosen(found, options)
    try:
        script = str(HERE / "mosec_half_millisecond.py")
        more = ("--address", "127.0.0.1", "--port", "{port}", "--log-level", "error")
        command = (mosec_python(), script, "--processes", str(options.workers), *more)
        found.append(Contestant("mosec", command, "/inference", False))
    except UnavailableError as error:
        failures["mosec"] = str(error)
    return chosen(found, options)


def chosen(found: Sequence[Contestant], options: argparse.Namespace) -> list[Contestant]:
    return [contestant for contestant in found if not options.only or contestant.name in options.only.split(",")]


def await_workers(port: int, count: int) -> None:
    """Wait until so many workers are ready. Raises UnavailableError."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        workers = json.loads(exchange(port, "GET", "/status.json")[1])["workers"]
        if sum(worker["state"] == "ready" for worker in workers) >= count:
            return
        time.sleep(0.1)
    raise UnavailableError(f"not all of {count} workers were ready within {START_SECONDS:.0f} s")


def measure(contestant: Contestant, scenario: Scenario, options: argparse.Namespace, scratch: Path) -> Sample:
    """Start the server, wait for its workers, warm it up, load it, stop it. Raises UnavailableError."""
    port = free_port()
    log, body = scratch / "server.log", scratch / "body"
    body.write_bytes(scenario.body)
    command = [part.replace("{port}", str(port)) for part in contestant.command]
    load = (f"http://127.0.0.1:{port}{contestant.path}", body, scenario.content_type, options.connections)
    try:
        with running(command, log, scratch) as process:
            if contestant.has_status:
                await_status(process, port, "GET", "/v2/health/ready", None)
                await_workers(port, options.workers)
            if not scenario.echoed(await_status(process, port, "POST", contestant.path, scenario)):
                raise UnavailableError("the answer is not the request")
            run_wrk(*load, WARM_UP_SECONDS, options.threads)
            meter = CpuMeter(process.pid)
            seen = run_wrk(*load, options.seconds, options.threads)
            used = meter.read()
    except (UnavailableError, LoadError, OSError) as error:
        raise UnavailableError(f"{error}{log_tail(log) if log.exists() else ''}") from error
    each = 1e6 / max(seen.requests, 1)
    return Sample(
        rate=seen.requests / seen.seconds,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        cpu_us=used.seconds * each,
        front_us=used.root * each,
        front_busy=used.root / seen.seconds,
        faults=seen.non_2xx + seen.socket_errors + used.ended,
    )


def show(results: dict[str, dict[int, Sample]], reference: str) -> None:
    """A line for each contestant: medians, and the medians of each round's own ratio to the reference."""
    print(
        f"{'':20}  {'rate/s':>8}  {'p50 ms':>7}  {'p99 ms':>7}  {'CPU us':>7}  {'front us':>8}  {'front busy':>10}",
        end="",
    )
    print(f"  rate, CPU and front us to {reference}")
    base = results.get(reference, {})
    for name, rounds in results.items():
        if not rounds:
            continue
        figures = {
            key: statistics.median(asdict(sample)[key] for sample in rounds.values())
            for key in asdict(rounds[min(rounds)])
        }
        print(
            f"{name:20}  {figures['rate']:8.0f}  {figures['p50_ms']:7.2f}  {figures['p99_ms']:7.2f}"
            f"  {figures['cpu_us']:7.1f}  {figures['front_us']:8.1f}  {figures['front_busy']:10.0%}",
            end="",
        )
        for key in ("rate", "cpu_us", "front_us"):
            ratios = [getattr(rounds[turn], key) / getattr(base[turn], key) for turn in rounds.keys() & base.keys()]
            print(f"  {statistics.median(ratios):.3f}" if ratios else "  -", end="")
        print(f"  !!! {sum(sample.faults for sample in rounds.values())} faults" if figures["faults"] else "")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/fronts/run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds to take the median of (default 3)")
    parser.add_argument("--seconds", type=int, default=5, help="length of one measurement (default 5)")
    parser.add_argument("--connections", type=int, default=256, help="open connections (default 256)")
    parser.add_argument("--threads", type=int, default=4, help="threads of wrk (default 4)")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"workers of each server (default {WORKERS})")
    parser.add_argument("--only", metavar="NAME,...", help="only these: panglot, panglot --no-ahead, before, mosec")
    parser.add_argument("--panglot", metavar="COMMAND", help="the panglot to measure (default: beside Python)")
    parser.add_argument("--before", metavar="COMMAND", help="another panglot to measure beside it")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every figure of every round")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if shutil.which("wrk") is None:
        print("wrk is not installed (apt-get install wrk)", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that servers are stopped on the way out.
    failures: dict[str, str] = {}
    everyone = contestants(options, failures)
    results: dict[str, dict[int, Sample]] = {contestant.name: {} for contestant in everyone}
    scenario = scenarios()["json"]
    with tempfile.TemporaryDirectory(prefix="fronts-") as scratch:
        for turn in range(options.rounds):
            start = turn % max(len(everyone), 1)
            for contestant in everyone[start:] + everyone[:start]:
                if contestant.name in failures:
                    continue
                print(f"round {turn + 1} of {options.rounds}: {contestant.name}", file=sys.stderr, flush=True)
                try:
                    results[contestant.name][turn] = measure(contestant, scenario, options, Path(scratch))
                except UnavailableError as error:
                    failures[contestant.name] = str(error)
    print(
        f"\n0.5 ms script, {options.workers} workers: medians of {options.rounds} interleaved rounds of"
        f" {options.seconds} s, {options.connections} connections, {os.cpu_count()} CPUs\n"
    )
    show(results, "before" if options.before else "panglot --no-ahead")
    for name, reason in failures.items():
        print(f"!!! {name} could not run: {reason}")
    if options.json:
        rounds = {name: {turn: asdict(sample) for turn, sample in each.items()} for name, each in results.items()}
        options.json.write_text(json.dumps(rounds, indent=2) + "\n")
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
