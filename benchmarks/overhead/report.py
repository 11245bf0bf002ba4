"""The run as text and as JSON."""

from __future__ import annotations

import dataclasses
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from budgets import Rounds, Verdict, median_ratio
from contestants import Contestant
from load import Scenario

FIGURES = ("requests_per_second", "p50_ms", "p99_ms", "cpu_us", "front_us")
HEADER = (
    "contestant", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "(min to max)", "front", "workers", "to floor",
)  # fmt: skip


def median(rounds: Rounds, figure: str) -> float:
    return float(statistics.median(getattr(sample, figure) for sample in rounds.values()))


def row(name: str, rounds: Rounds, floor: Rounds) -> tuple[str, ...]:
    cpu = [sample.cpu_us for sample in rounds.values()]
    ratio = median_ratio(rounds, floor, "cpu_us")
    return (
        name,
        f"{median(rounds, 'requests_per_second'):.0f}",
        f"{median(rounds, 'p50_ms'):.2f}",
        f"{median(rounds, 'p99_ms'):.2f}",
        f"{statistics.median(cpu):.1f}",
        f"({min(cpu):.1f} to {max(cpu):.1f})",
        f"{median(rounds, 'front_us'):.1f}",
        f"{statistics.median(sample.cpu_us - sample.front_us for sample in rounds.values()):.1f}",
        "-" if ratio is None else f"{ratio:.2f}",
    )


def table(chosen: Sequence[Contestant], results: Mapping[str, Rounds], scenario: Scenario) -> str:
    """The contestants of one scenario; empty when none was measured."""
    names = [contestant.name for contestant in chosen if contestant.scenario == scenario.name]
    floor = next((results.get(name, {}) for name in names if name.startswith("floor")), {})
    rows = [row(name, results[name], floor) for name in names if results.get(name)]
    if not rows:
        return ""
    widths = [max(len(line[column]) for line in (HEADER, *rows)) for column in range(len(HEADER))]
    lines = [scenario.title]
    for line in (HEADER, *rows):
        figures = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        lines.append("  ".join(["", line[0].ljust(widths[0]), *figures]))
    return "\n".join(lines) + "\n"


def budget_lines(verdicts: Sequence[Verdict]) -> str:
    lines = ["budgets"]
    width = max(len(verdict.text) for verdict in verdicts)
    for verdict in verdicts:
        value = "-" if verdict.value is None else f"{verdict.value:.2f} {verdict.unit}"
        limit = f"{verdict.relation} {verdict.limit:g} {verdict.unit}"
        outcome = verdict.outcome + aim_note(verdict)
        lines.append(f"  {verdict.text.ljust(width)}  {value:>9}  {limit:<9}  {outcome}")
    return "\n".join(lines) + "\n"


def aim_note(verdict: Verdict) -> str:
    if verdict.aim is None or verdict.value is None or verdict.outcome == "INVALID":
        return ""
    return f" (aim < {verdict.aim:g}: {'reached' if verdict.value < verdict.aim else 'not reached'})"


def fault_lines(results: Mapping[str, Rounds]) -> str:
    """Loud lines for everything that should have been zero."""
    lines = []
    for name, rounds in results.items():
        non_2xx, sockets, lost = (
            sum(getattr(sample, figure) for sample in rounds.values())
            for figure in ("non_2xx", "socket_errors", "processes_lost")
        )
        if non_2xx or sockets or lost:
            counts = f"{non_2xx} answers not 2xx, {sockets} socket errors, {lost} processes ended"
            lines.append(f"!!! {name}: {counts}: ITS FIGURES DO NOT COUNT")
    return "\n".join(lines) + "\n" if lines else ""


def machine() -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def as_json(
    settings: Mapping[str, Any],
    host: Mapping[str, Any],
    results: Mapping[str, Rounds],
    verdicts: Sequence[Verdict],
    failures: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "settings": dict(settings),
        "machine": dict(host),
        "contestants": {
            name: {
                "median": {figure: median(rounds, figure) for figure in FIGURES},
                "rounds": [dataclasses.asdict(sample) | {"round": index} for index, sample in rounds.items()],
            }
            for name, rounds in results.items()
            if rounds
        },
        "budgets": [dataclasses.asdict(verdict) for verdict in verdicts],
        "failures": dict(failures),
    }
