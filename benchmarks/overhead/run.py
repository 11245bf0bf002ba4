"""CPU per request of panglot beside a bare uvicorn and mosec, in interleaved rounds.

It measures and never asserts: the exit code is 0, 2 when something could not run, and with --strict 1 when a
budget is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import report
import secret_files
from budgets import Verdict, verdicts
from contestants import Contestant, UnavailableError, contestants, panglot_command, prepare
from load import scenarios
from measure import Idle, Sample, measure, measure_help, measure_idle
from peers import PEERS

AT_REST = ("idle", "help")
OTHERS = (*(peer.name for peer in PEERS), "floor-listed", "floor-tensor", "panglot-tensor")
"""Who is measured only when asked for."""


def whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/overhead/run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=whole, default=5, help="rounds to take the median of (default 5)")
    parser.add_argument("--seconds", type=whole, default=3, help="length of one measurement (default 3)")
    parser.add_argument("--connections", type=whole, default=64, help="open connections (default 64)")
    parser.add_argument("--only", metavar="NAME,...", help="measure only these: contestants, idle, help")
    parser.add_argument("--peers", action="store_true", help="also LitServe, BentoML, MLServer, PyTriton, Ray Serve")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every figure of every round")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a budget is missed")
    parser.add_argument("--panglot", metavar="COMMAND", help="the panglot to measure (default: beside Python)")
    options = parser.parse_args(arguments)
    known = [contestant.name for contestant in contestants(("panglot",))] + list(AT_REST)
    usual = [name for name in known if name not in OTHERS or options.peers]
    options.only = options.only.split(",") if options.only else usual
    unknown = [name for name in options.only if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)} (known: {', '.join(known)})")
    return options


class Run:
    """One run: what was measured so far, and what could not be."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.panglot = panglot_command(options.panglot)
        self.everyone = contestants(self.panglot)
        self.chosen = [contestant for contestant in self.everyone if contestant.name in options.only]
        self.scenarios = scenarios()
        self.results: dict[str, dict[int, Sample]] = {contestant.name: {} for contestant in self.chosen}
        self.idle: Idle | None = None
        self.help_seconds: float | None = None
        self.failures: dict[str, str] = {}

    def rounds(self) -> None:
        """Every contestant once per round, each round beginning with another; one server at a time."""
        for index in range(self.options.rounds):
            start = index % max(len(self.chosen), 1)
            for contestant in self.chosen[start:] + self.chosen[:start]:
                if contestant.name not in self.failures:
                    self.one(index, contestant)

    def one(self, index: int, contestant: Contestant) -> None:
        progress(f"round {index + 1} of {self.options.rounds}: {contestant.name}")
        scenario = self.scenarios[contestant.scenario]
        try:
            prepare(contestant)
            sample = measure(contestant, scenario, self.options.connections, self.options.seconds, self.scratch)
        except UnavailableError as error:
            self.failures[contestant.name] = str(error)
        else:
            self.results[contestant.name][index] = sample

    def at_rest(self) -> None:
        """Idle memory and the cost of starting the command line."""
        single = next(contestant for contestant in self.everyone if contestant.name == "panglot-single")
        try:
            if "idle" in self.options.only:
                progress("idle memory")
                self.idle = measure_idle(single, self.scratch)
        except UnavailableError as error:
            self.failures["idle"] = str(error)
        try:
            if "help" in self.options.only:
                progress("panglot --help")
                repeats = range(self.options.rounds)
                self.help_seconds = statistics.median(measure_help(self.panglot) for _ in repeats)
        except UnavailableError as error:
            self.failures["help"] = str(error)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(run: Run, judged: Sequence[Verdict], host: dict[str, object]) -> None:
    options = run.options
    print(
        f"\nmedians of {options.rounds} interleaved rounds of {options.seconds} s,"
        f" {options.connections} connections, {host['cpus']} CPUs,"
        f" load average at the start {host['load_average']:.2f}\n"
    )
    for scenario in run.scenarios.values():
        if text := report.table(run.chosen, run.results, scenario):
            print(text)
    print(report.budget_lines(judged))
    if text := report.fault_lines(run.results):
        print(text)
    for name, reason in run.failures.items():
        print(f"!!! {name} could not run: {reason}")


def exit_code(run: Run, judged: Sequence[Verdict]) -> int:
    if run.failures:
        return 2
    failed = any(verdict.outcome in ("MISSED", "INVALID") for verdict in judged)
    return 1 if run.options.strict and failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if shutil.which("wrk") is None:
        print("wrk is not installed (apt-get install wrk)", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped on the way out
    host = report.machine()
    with tempfile.TemporaryDirectory(prefix="overhead-") as scratch:
        secret_files.write(Path(scratch))
        run = Run(options, Path(scratch))
        run.rounds()
        run.at_rest()
    judged = verdicts(run.results, run.idle, run.help_seconds)
    show(run, judged, host)
    if options.json:
        settings = {name: getattr(options, name) for name in ("rounds", "seconds", "connections", "only")}
        figures = report.as_json(settings, host, run.results, judged, run.failures)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return exit_code(run, judged)


if __name__ == "__main__":
    sys.exit(main())
