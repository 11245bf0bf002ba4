"""MLflow's and Azure ML's own servers, Panglot, a bare server, and a loop without server, in turns: CPU per request.

All make the same Python calls in the same interpreter. The bare server is a floor as in `benchmarks/overhead`: uvicorn
in one process around these calls, and nothing else. The loop has no HTTP at all.

It measures and never asserts: the exit code is 0, or 2 when something could not run. The servers are installed on first
use, each in an environment of its own, which Panglot's workers use too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "overhead"), str(HERE.parent.parent / "tests")]

from contestants import UnavailableError, panglot_command  # noqa: E402
from load import LoadError, Scenario, run_wrk  # noqa: E402
from measure import await_status, free_port  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

from support import azureml, environments, mlflow  # noqa: E402

ORIGINAL, PANGLOT, BARE, CALLS = "original", "panglot", "bare", "calls"
BARE_LIBRARIES = ("uvicorn==0.54.0", "httptools==0.9.0", "uvloop==0.23.0")
ROWS = [{"width": number / 8, "height": 2.0, "name": f"box {number}"} for number in range(16)]
HOUSES = {"dataframe_split": {"columns": ["town", "size"], "data": [["Ghent", 1.5 + number] for number in range(16)]}}
WARM_UP_SECONDS = 2
MLFLOW_SERVER = ("-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "mlflow.pyfunc.scoring_server.app:app")
AZUREML_SERVER = ("--entry_script", "score.py", "--model_dir", "{package}", "--port", "{port}")


class Server(NamedTuple):
    url: str
    pid: int


@dataclass(frozen=True)
class Kind:
    """A script, the interpreter of its platform, and how the platform's server is started with it."""

    name: str
    package: Path
    body: bytes
    path: str
    python: str
    command: tuple[str, ...]
    env: dict[str, str]


def kinds() -> list[Kind]:
    model = mlflow.saved() / "houses"
    env = {"__pyfunc_model_path__": model.as_uri(), **mlflow.QUIET}
    of_mlflow = Kind("mlflow", model, json.dumps(HOUSES).encode(), "/invocations", mlflow.python(),
                     (mlflow.python(), *MLFLOW_SERVER), env)  # fmt: skip
    body, python = json.dumps({"data": ROWS}).encode(), azureml.python()
    command = (str(Path(python).with_name("azmlinfsrv")), *AZUREML_SERVER)
    return [
        of_mlflow,
        *(Kind(name, HERE / "packages" / name, body, "/score", python, command, {}) for name in ("schema", "raw")),
    ]


@contextlib.contextmanager
def theirs(kind: Kind, scratch: Path, options: argparse.Namespace) -> Iterator[Server]:
    with _running(kind, [*kind.command], scratch / "original.log", kind.env) as server:
        yield server


@contextlib.contextmanager
def ours(kind: Kind, scratch: Path, options: argparse.Namespace) -> Iterator[Server]:
    flags = ["--workers", "1", "--python", kind.python, "--host", "127.0.0.1", "--port", "{port}"]
    command = [*panglot_command(options.panglot), "serve", str(kind.package), *flags]
    with _running(kind, command, scratch / "panglot.log", {}) as server:
        yield server


@contextlib.contextmanager
def bare(kind: Kind, scratch: Path, options: argparse.Namespace) -> Iterator[Server]:
    program = [kind.python, str(HERE / "bare_server.py"), kind.name, str(kind.package), "{port}", str(libraries())]
    with _running(kind, program, scratch / "bare.log", kind.env) as server:
        yield server


def libraries() -> Path:
    """A folder with uvicorn, httptools and uvloop, which every interpreter of our version can import from."""

    def make(folder: Path) -> None:
        environments.install(sys.executable, "--target", str(folder / "packages"), *BARE_LIBRARIES)

    version = ".".join(map(str, sys.version_info[:2]))
    return environments.made(f"bare-uvicorn-0.54.0-on-{version}", make) / "packages"


@contextlib.contextmanager
def _running(kind: Kind, command: list[str], log: Path, env: dict[str, str]) -> Iterator[Server]:
    port = free_port()
    within = ["env", "-C", str(kind.package), *(f"{name}={value}" for name, value in env.items())]
    stands = {"{port}": str(port), "{package}": str(kind.package)}
    made = [*within, *(stands.get(part, part) for part in command)]
    with running(made, log, log.parent) as process:
        if PANGLOT in log.name:
            await_status(process, port, "GET", "/v2/health/ready", None)
        await_status(process, port, "POST", kind.path, Scenario(kind.name, kind.name, kind.body, "application/json"))
        yield Server(f"http://127.0.0.1:{port}{kind.path}", process.pid)


def measure(kind: Kind, server: Server, body: Path, options: argparse.Namespace) -> float:
    """CPU microseconds per request, of all processes of the server. Raises LoadError."""
    load = (server.url, body, "application/json", options.connections)
    run_wrk(*load, WARM_UP_SECONDS)
    meter = CpuMeter(server.pid)
    seen = run_wrk(*load, options.seconds)
    used = meter.read()
    faults = seen.non_2xx + seen.socket_errors + used.ended
    if faults or not seen.requests:
        raise LoadError(f"{faults} faults in {seen.requests} requests")
    return used.seconds * 1e6 / seen.requests


def in_process(kind: Kind, body: Path, options: argparse.Namespace) -> float:
    """CPU microseconds of the Python calls of one request."""
    command = [kind.python, str(HERE / "in_process.py"), kind.name, str(kind.package), str(body), str(options.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoadError(done.stderr[-2000:])
    return float(done.stdout.split()[-1])


Results = dict[str, dict[str, list[float]]]


def show(results: Results) -> None:
    """Medians over the rounds, and medians of the ratios inside the rounds."""
    others = (BARE, CALLS, ORIGINAL)
    print(f"{'script':8}" + "".join(f"{who + ' us':>13}" for who in (PANGLOT, *others)), end="")
    print("".join(f"{'to ' + who:>13}" for who in others))
    for name, samples in results.items():
        medians = [statistics.median(samples[who]) for who in (PANGLOT, *others)]
        ratios = [
            statistics.median(mine / other for mine, other in zip(samples[PANGLOT], samples[who], strict=True))
            for who in others
        ]
        print(f"{name:8}" + "".join(f"{one:13.1f}" for one in medians) + "".join(f"{one:13.2f}" for one in ratios))


def one_round(kind: Kind, scratch: Path, options: argparse.Namespace, samples: dict[str, list[float]]) -> None:
    body = scratch / f"{kind.name}.body"
    body.write_bytes(kind.body)
    starts: tuple[tuple[str, Callable[..., contextlib.AbstractContextManager[Server]]], ...] = (
        (ORIGINAL, theirs),
        (PANGLOT, ours),
        (BARE, bare),
    )
    for name, start in starts:
        with start(kind, scratch, options) as server:
            samples.setdefault(name, []).append(measure(kind, server, body, options))
    samples.setdefault(CALLS, []).append(in_process(kind, body, options))


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/clouds/run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds to take the median of (default 3)")
    parser.add_argument("--seconds", type=int, default=3, help="length of one measurement (default 3)")
    parser.add_argument("--connections", type=int, default=16, help="open connections (default 16)")
    parser.add_argument("--only", default="", metavar="NAME,...", help="mlflow, schema, raw")
    parser.add_argument("--panglot", metavar="COMMAND", help="the panglot to measure (default: beside Python)")
    options = parser.parse_args()
    chosen = [kind for kind in kinds() if not options.only or kind.name in options.only.split(",")]
    results: Results = {kind.name: {} for kind in chosen}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(options.rounds):
            for kind in chosen:
                try:
                    one_round(kind, Path(scratch), options, results[kind.name])
                except (UnavailableError, LoadError, AssertionError, OSError, subprocess.SubprocessError) as error:
                    print(f"{kind.name} could not run: {error}", file=sys.stderr)
                    for log in Path(scratch).glob("*.log"):
                        print(log.read_text()[-2000:], file=sys.stderr)
                    return 2
    show(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
