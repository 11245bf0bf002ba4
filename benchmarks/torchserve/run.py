"""TorchServe and Panglot on the same archives, in turns: an echo, and a handler that sleeps 5 ms for a batch of 8.

It measures and never asserts: the exit code is 0, or 2 when something could not run. Java and torch are needed;
torchserve itself is installed on first use.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "overhead"), str(HERE.parent.parent / "tests")]

from contestants import UnavailableError, panglot_command  # noqa: E402
from load import LoadError, run_wrk, scenarios  # noqa: E402
from measure import await_status, free_port  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

from support import torchserve  # noqa: E402

MODELS = ("echo", "nap")
TORCHSERVE, PANGLOT = "TorchServe 0.12.0", "Panglot"
WARM_UP_SECONDS = 5
"""Java compiles what runs often."""


class Server(NamedTuple):
    """A running server: where it is, its first process, and the token that it wants."""

    url: str
    pid: int
    token: str = ""


@dataclass(frozen=True)
class Sample:
    """One handler on one server in one round."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    faults: int


@contextlib.contextmanager
def theirs(store: Path, scratch: Path, options: argparse.Namespace) -> Iterator[Server]:
    with torchserve.original(store, scratch, {name: f"{name}.mar" for name in MODELS}) as original:
        yield Server(original.rest.url, original.rest.process.pid, original.token)


@contextlib.contextmanager
def ours(store: Path, scratch: Path, options: argparse.Namespace) -> Iterator[Server]:
    port = free_port()
    models = [f"{name}={name}.mar" for name in MODELS]
    flags = ["--workers", "1", "--host", "127.0.0.1", "--port", str(port)]
    command = [*panglot_command(options.panglot), "torchserve", "--model-store", str(store), *models, *flags]
    with running(command, scratch / "panglot.log", scratch) as process:
        await_status(process, port, "GET", "/v2/health/ready", None)
        yield Server(f"http://127.0.0.1:{port}", process.pid)


def measure(server: Server, model: str, options: argparse.Namespace, scratch: Path) -> Sample:
    """Load one handler. Raises LoadError."""
    scenario, body = scenarios()["json"], scratch / "body"
    body.write_bytes(scenario.body)
    load = (f"{server.url}/predictions/{model}", body, scenario.content_type, options.connections)
    run_wrk(*load, WARM_UP_SECONDS, secret=server.token)
    meter = CpuMeter(server.pid)
    seen = run_wrk(*load, options.seconds, secret=server.token)
    used = meter.read()
    return Sample(
        rate=seen.requests / seen.seconds,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        cpu_us=used.seconds * 1e6 / max(seen.requests, 1),
        faults=seen.non_2xx + seen.socket_errors + used.ended,
    )


def archives(store: Path) -> Path:
    for name in MODELS:
        folder = HERE / "packages" / name
        config = {"configFile": "model-config.yaml"} if (folder / "model-config.yaml").is_file() else {}
        torchserve.archive(folder, store / f"{name}.mar", "handler.py", "1.0", **config)
    return store


def show(results: dict[tuple[str, str], list[Sample]]) -> None:
    """Medians over the rounds, a line for each handler on each server."""
    print(f"{'handler':8} {'server':20} {'rate/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'CPU us':>8} {'faults':>7}")
    for (model, name), samples in sorted(results.items()):
        medians = [
            statistics.median(getattr(sample, figure) for sample in samples)
            for figure in ("rate", "p50_ms", "p99_ms", "cpu_us")
        ]
        faults = sum(sample.faults for sample in samples)
        print(f"{model:8} {name:20}" + "".join(f" {figure:8.2f}" for figure in medians) + f" {faults:7}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/torchserve/run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds to take the median of (default 3)")
    parser.add_argument("--seconds", type=int, default=5, help="length of one measurement (default 5)")
    parser.add_argument("--connections", type=int, default=32, help="open connections (default 32)")
    parser.add_argument("--panglot", metavar="COMMAND", help="the panglot to measure (default: beside Python)")
    options = parser.parse_args()
    results: dict[tuple[str, str], list[Sample]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch, "store")
        store.mkdir()
        archives(store)
        for turn in range(options.rounds):
            for name, start in ((TORCHSERVE, theirs), (PANGLOT, ours)):
                folder = Path(scratch, f"{turn}-{name.split()[0]}")
                folder.mkdir()
                try:
                    with start(store, folder, options) as server:
                        for model in MODELS:
                            sample = measure(server, model, options, folder)
                            results.setdefault((model, name), []).append(sample)
                except (UnavailableError, LoadError, AssertionError, OSError, subprocess.SubprocessError) as error:
                    print(f"{name} could not run: {error}", file=sys.stderr)
                    return 2
    show(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
