"""Workers on a Ray cluster beside workers of this machine, and Ray Serve's own ingress beside both.

In interleaved rounds: the rate of scripts that sleep in each batch, CPU time per request, and how long the slowest
answer takes when a worker or a node is killed. It measures and never asserts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from losses import kill_node, kill_worker, longest_wait
from servers import LOCAL, NODES, SERVE, RayCluster, Started, one_cluster, serving, workers

from load import run_wrk  # isort: skip
from measure import log_tail  # isort: skip
from peers import UnavailableError  # isort: skip

OCTETS = "application/octet-stream"
PATHS = {LOCAL: "/predict", NODES: "/predict", SERVE: "/"}


@dataclass(frozen=True)
class Case:
    """A script that sleeps for so long per batch of up to 32, and the bodies it gets."""

    milliseconds: float
    size: int
    ingress: bool = True
    """Whether Ray Serve is measured too."""

    @property
    def title(self) -> str:
        work = f"{self.milliseconds:g} ms per batch" if self.milliseconds else "echo"
        return f"{work}, {self.size / 1000:g} kB" if self.size >= 1000 else f"{work}, {self.size} B"


CASES = (Case(5, 300), Case(20, 300), Case(20, 50_000, ingress=False), Case(0, 300), Case(0, 50_000))
ASKED = {"5 ms per batch, 300 B": "rate ≥ 0.9", "20 ms per batch, 300 B": "rate ≥ 0.9",
         "20 ms per batch, 50 kB": "rate ≥ 0.9", "echo, 300 B": "CPU ≤ 1.2", "echo, 50 kB": "CPU ≤ 1.5"}  # fmt: skip


@dataclass(frozen=True)
class Figures:
    rate: float
    cpu_us: float
    wrong: int


def measured(started: Started, kind: str, case: Case, seconds: int, body: Path) -> Figures:
    """Load for a while, after a second to warm up."""
    url = f"http://127.0.0.1:{started.port}{PATHS[kind]}"
    connections = 96 if case.milliseconds else 64
    run_wrk(url, body, OCTETS, connections, 1)
    meter = started.meter()
    seen = run_wrk(url, body, OCTETS, connections, seconds)
    cpu = meter.seconds() * 1e6 / max(seen.requests, 1)
    return Figures(seen.requests / seen.seconds, cpu, seen.non_2xx + seen.socket_errors)


def kinds(case: Case, first: int, ingress: bool) -> Iterator[str]:
    """Who is measured, beginning with another in each round."""
    all_of_them = [LOCAL, NODES, *([SERVE] if case.ingress and ingress else [])]
    yield from all_of_them[first % len(all_of_them) :] + all_of_them[: first % len(all_of_them)]


def compare(case: Case, options: argparse.Namespace, scratch: Path, cluster: RayCluster) -> dict[str, list[Figures]]:
    """All figures of a case, round by round."""
    results: dict[str, list[Figures]] = {LOCAL: [], NODES: [], SERVE: []}
    body = scratch / "body"
    body.write_bytes(b"x" * case.size)
    for index in range(options.rounds):
        for kind in kinds(case, index, options.ingress):
            progress(f"{case.title}: round {index + 1} of {options.rounds}, {kind}")
            try:
                with serving(kind, case.milliseconds, scratch, cluster) as started:
                    results[kind].append(measured(started, kind, case, options.seconds, body))
            except UnavailableError as error:
                progress(f"!!! {kind} could not run: {error}{log_tail(scratch / f'{kind}.log')}")
    return results


def show(case: Case, results: dict[str, list[Figures]]) -> None:
    """A row of the table: medians, and the medians of the ratios inside each round."""
    cells = [case.title.ljust(24)]
    for kind in (LOCAL, NODES, SERVE):
        rounds = results[kind]
        rate = f"{statistics.median(f.rate for f in rounds):.0f}/s" if rounds else "-"
        cpu = f"{statistics.median(f.cpu_us for f in rounds):.0f} µs" if rounds else "-"
        cells.append(f"{rate:>9} {cpu:>9}")
    pairs = list(zip(results[LOCAL], results[NODES], strict=False))
    if pairs:
        rates = statistics.median(ours.rate / local.rate for local, ours in pairs)
        cpus = statistics.median(ours.cpu_us / local.cpu_us for local, ours in pairs)
        cells.append(f"rate {rates:.2f}  CPU {cpus:.2f}  (asked: {ASKED[case.title]})")
    wrong = sum(figures.wrong for rounds in results.values() for figures in rounds)
    print("  ".join(cells) + (f"  !!! {wrong} answers were wrong" if wrong else ""), flush=True)


LOSSES: tuple[tuple[str, int, Callable[[Started], None], str], ...] = (
    ("the only worker is killed", 1, kill_worker, "≤ 0.3 s"),
    ("one of two nodes is killed", 2, kill_node, "≤ 0.5 s"),
)


def lose(options: argparse.Namespace, scratch: Path, cluster: RayCluster) -> None:
    """Print the longest wait for each kind of loss, for all rounds."""
    for title, count, harm, asked in (loss for loss in LOSSES if options.only in loss[0]):
        waits, wrong, answers = [], 0, 0
        for index in range(options.rounds):
            progress(f"{title}: round {index + 1} of {options.rounds}")
            with serving(NODES, 0, scratch, cluster, ("--workers", str(count))) as started:
                wait_for(lambda count=count: len(workers(cluster)) == count)
                seen = longest_wait(started, lambda harm=harm, started=started: harm(started))
            waits.append(seen.longest)
            wrong, answers = wrong + len(seen.wrong), answers + seen.answers
            if harm is kill_node:
                cluster.start(3, 2)
        told = ", ".join(f"{wait:.2f}" for wait in waits)
        print(f"{title}: longest wait {told} s (asked: {asked}); {wrong} of {answers} answers wrong", flush=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/ray/run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5, help="of load for each figure")
    parser.add_argument("--no-ingress", dest="ingress", action="store_false", help="without Ray Serve")
    parser.add_argument("--only", metavar="WORD", default="", help="what has it in its name: echo, 'ms per', killed")
    options = parser.parse_args()
    with one_cluster() as cluster, tempfile.TemporaryDirectory(prefix="bench-ray-") as scratch:
        head = (f"{kind}: rate, CPU".rjust(19) for kind in (LOCAL, NODES, SERVE))
        print("  ".join((" " * 24, *head, "ray to local")), flush=True)
        for case in CASES:
            if options.only in case.title:
                show(case, compare(case, options, Path(scratch), cluster))
        lose(options, Path(scratch), cluster)


if __name__ == "__main__":
    main()
