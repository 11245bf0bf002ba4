"""The figures of a bench as one JSON object, and how they compare with older ones."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import panglot
from panglot.errors import StartError
from panglot.tools.bench.levels import Level, Load

VERSION = 1
SURE = 2.0
"""How many times its standard error a difference must be to count."""


@dataclass
class Bench:
    """All levels of one run, the target and the machine."""

    target: str
    dialect: str
    inputs: int
    levels: list[Level] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    when: str = ""
    panglot: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {"bench": VERSION, **asdict(self)}


def begin(target: str, dialect: str, inputs: int, cpus: str) -> Bench:
    machine = {"system": platform.platform(terse=True), "python": platform.python_version(), "cpus": cpus}
    when = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return Bench(target, dialect, inputs, machine=machine, when=when, panglot=panglot.__version__)


def text(bench: Bench, changes: Sequence[Change] | None) -> str:
    """All figures as one JSON object, with the `changes` against an older bench if there is one."""
    compared = {} if changes is None else {"changes": [asdict(change) for change in changes]}
    return json.dumps({**bench.as_dict(), **compared}, indent=2)


def save(bench: Bench, path: Path) -> None:
    try:
        path.write_text(json.dumps(bench.as_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def read(path: Path) -> Bench:
    """The bench in a file. Raises StartError for another file."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        saved.pop("changes", None)
        if saved.pop("bench") != VERSION:
            raise StartError("it was written by another version of panglot bench", file=str(path))
        levels = [Level(**{**level, "load": Load(**level["load"])}) for level in saved.pop("levels")]
        return Bench(**saved, levels=levels)
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}", fix="name a file that --save wrote") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StartError(
            "this is no result of panglot bench", file=str(path), fix="name one that --save wrote"
        ) from None


# Comparing


@dataclass(frozen=True)
class Change:
    """One figure of one load, before and now. `verdict` is better, worse or same; `noise` is in the figure's unit."""

    load: Load
    figure: str
    before: float
    now: float
    noise: float
    verdict: str


def compare(old: Bench, new: Bench) -> list[Change]:
    """The changes of throughput, median and 99th percentile at every load that both have."""
    changes = []
    for level in new.levels:
        before = next((entry for entry in old.levels if entry.load == level.load), None)
        if before is None:
            continue
        # With a fixed rate, the throughput is the rate and says nothing.
        figures = ("p50", "p99") if level.load.rate else ("throughput", "p50", "p99")
        changes += [_change(level.load, figure, before, level) for figure in figures]
    return changes


def _change(load: Load, figure: str, before: Level, now: Level) -> Change:
    was, is_now = (level.throughput if figure == "throughput" else level.latency[figure] for level in (before, now))
    noise = SURE * math.hypot(_error(before.slices, figure), _error(now.slices, figure))
    difference = is_now - was
    if abs(difference) <= noise:
        verdict = "same"
    else:
        verdict = "better" if (difference > 0) == (figure == "throughput") else "worse"
    return Change(load, figure, was, is_now, noise, verdict)


def _error(slices: Sequence[dict[str, float]], figure: str) -> float:
    """The standard error of a figure, from its scatter over the slices of the run."""
    values = [window[figure] for window in slices]
    if len(values) < 2:
        # One slice has no scatter: then no difference is sure, and every verdict is `same`.
        return math.inf
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))
