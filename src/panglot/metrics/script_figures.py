"""Figures that scripts make themselves: counters, gauges and histograms with names of their own.

A script is trusted but buggy: names are checked, and there are only so many series.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from panglot_worker.clipping import clipped

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
OUR_NAMES = "panglot_"
MOST_SERIES = 1000
MOST_LABELS = 32
MOST_BUCKETS = 100
LONGEST_TEXT = 200

Labels = tuple[tuple[str, str], ...]


class Observations:
    """A histogram with limits of the script's own."""

    def __init__(self, limits: Sequence[float]) -> None:
        self.limits = sorted(limits)
        self.counts = [0] * (len(self.limits) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.limits, value)] += 1
        self.total += value


class FigureFamily:
    """All series of one name."""

    def __init__(self, kind: str, about: str) -> None:
        self.kind = kind
        self.about = about
        self.values: dict[Labels, float] = {}
        self.observed: dict[Labels, Observations] = {}


class ScriptFigures:
    """The figures of one model's scripts, from all its workers."""

    def __init__(self) -> None:
        self.families: dict[str, FigureFamily] = {}
        self._refused: set[str] = set()
        self._series = 0

    def take(self, event: Mapping[str, Any]) -> str:
        """Take what a worker says of a figure; what is wrong with it, the first time that a name is refused."""
        name, kind = clipped(str(event["family"]), LONGEST_TEXT), str(event["kind"])
        problem = self._problem(name, kind, event["labels"])
        if problem:
            return self._refusal(name, problem)
        about = " ".join(str(event.get("help", "")).split())
        family = self.families.setdefault(name, FigureFamily(kind, clipped(about, LONGEST_TEXT)))
        labels = tuple(sorted((str(key), clipped(str(text), LONGEST_TEXT)) for key, text in event["labels"].items()))
        if labels not in family.values and labels not in family.observed:
            if self._series >= MOST_SERIES:
                return self._refusal(name, f"there are {MOST_SERIES} series already")
            self._series += 1
        self._apply(family, labels, event)
        return ""

    def _refusal(self, name: str, problem: str) -> str:
        first = name not in self._refused and len(self._refused) < MOST_SERIES
        if first:
            self._refused.add(name)
        return f"the script's figure {name!r} is not shown: {problem}" if first else ""

    def _problem(self, name: str, kind: str, labels: Mapping[str, Any]) -> str:
        if not NAME.fullmatch(name) or name.startswith(OUR_NAMES):
            return f"a name has letters, digits, `_` and `:`, and does not begin with {OUR_NAMES}"
        if kind not in (COUNTER, GAUGE, HISTOGRAM):
            return "its kind is none"
        if len(labels) > MOST_LABELS or not all(LABEL.fullmatch(str(label)) for label in labels):
            return "a label has letters, digits and `_`"
        family = self.families.get(name)
        if family is not None and family.kind != kind:
            return f"there is a {family.kind} of this name"
        return ""

    def _apply(self, family: FigureFamily, labels: Labels, event: Mapping[str, Any]) -> None:
        value, change = float(event["value"]), event["change"]
        if family.kind == HISTOGRAM:
            if labels not in family.observed:
                limits = [float(limit) for limit in event.get("buckets") or () if isinstance(limit, int | float)]
                family.observed[labels] = Observations(
                    [limit for limit in limits if math.isfinite(limit)][:MOST_BUCKETS]
                )
            if change == "observe":
                family.observed[labels].add(value)
        elif change == "set":
            family.values[labels] = value
        else:
            family.values[labels] = family.values.get(labels, 0.0) + value

    def lines(self, heading: Any, wording: Any) -> list[str]:
        """The Prometheus text form."""
        lines: list[str] = []
        for name, family in self.families.items():
            lines += heading(name, family.about.replace("\\", "\\\\"), family.kind)
            for labels, value in sorted(family.values.items()):
                lines.append(f"{name}{wording(dict(labels))} {_number(value)}")
            for labels, observed in sorted(family.observed.items()):
                below = 0
                for limit, count in zip((*observed.limits, math.inf), observed.counts, strict=True):
                    below += count
                    lines.append(f"{name}_bucket{wording({**dict(labels), 'le': _number(limit)})} {below}")
                lines.append(f"{name}_sum{wording(dict(labels))} {_number(observed.total)}")
                lines.append(f"{name}_count{wording(dict(labels))} {below}")
        return lines


def _number(value: float) -> str:
    """A number as Prometheus writes it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else f"{value:.15g}"
