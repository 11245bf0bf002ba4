"""The findings of a replay so far: differences in groups, latencies on both sides, and the worst pairs."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

from panglot.recording.recording import Pair, RecordedAnswer
from panglot.tools.bench.histogram import FineHistogram
from panglot.tools.replay.answers import Found

MOST_GROUPS = 500
WORST = 12
"""The most pairs that are shown."""
LARGEST_SHOWN = 2 << 20
"""The most bytes of the bodies of a pair that is shown."""
SHARES = (50, 90, 99)
STAGE = re.compile(r"([\w.-]+);dur=([\d.]+)")
SERIOUS = ("unanswered", "status", "type", "parts", "missing key", "new key", "shape", "dtype", "size", "bytes")
"""Kinds of differences, the worst first. Differences of numbers come behind them."""


@dataclass
class DifferenceGroup:
    """Differences of one kind at one place. `count` is the number of pairs with them."""

    kind: str
    place: str
    count: int = 0
    gap: float = 0.0
    pair: int = 0
    """The number of the worst pair."""
    detail: str = ""

    def sentence(self, compared: int) -> str:
        """The group as people read it."""
        where = f"{self.place} " if self.place else ""
        if self.gap:
            return f"{where}differs by up to {self.gap:.3g} in {self.count} of {compared}"
        return f"{where}differs in {self.kind} in {self.count} of {compared}"


@dataclass
class Sides:
    """Latencies in microseconds, recorded and replayed, and the stages that both servers named, in milliseconds."""

    recorded: FineHistogram = field(default_factory=FineHistogram)
    replayed: FineHistogram = field(default_factory=FineHistogram)
    stages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0, 0.0]))
    """By name: the sum of the recorded times, the sum of the replayed times, and their number."""

    def add(self, pair: Pair, answer: RecordedAnswer, took: float) -> None:
        """Note how long the recorded and the replayed answer took, in seconds."""
        self.recorded.add([pair.took * 1e6])
        self.replayed.add([took * 1e6])
        before, now = (dict(STAGE.findall(side.header("server-timing"))) for side in (pair.answer, answer))
        for name in before.keys() & now.keys():
            sums = self.stages[name]
            for index, value in enumerate((float(before[name]), float(now[name]), 1.0)):
                sums[index] += value

    def latency(self) -> dict[str, dict[str, float]]:
        """Percentiles of both sides, in milliseconds, by name."""
        return {
            f"p{share}": {
                "recorded": self.recorded.percentile(share) / 1000,
                "replayed": self.replayed.percentile(share) / 1000,
            }
            for share in SHARES
        }

    def stage_means(self) -> dict[str, dict[str, float]]:
        return {
            name: {"recorded": before / count, "replayed": now / count}
            for name, (before, now, count) in sorted(self.stages.items())
        }


def _weight(noted: Found) -> float:
    return 1e9 - SERIOUS.index(noted.kind) if noted.kind in SERIOUS else noted.gap


class Findings:
    """All findings. Their memory is bounded: groups and worst pairs have a limit, whatever a server answers."""

    def __init__(self, slower: float = 0.0) -> None:
        self.compared = self.different = self.unanswered = self.skipped = 0
        self.skipped_why: dict[str, int] = defaultdict(int)
        self.groups: dict[tuple[str, str], DifferenceGroup] = {}
        self.sides = Sides()
        self.withheld: set[str] = set()
        self.refused = 0
        """Answers of 401 and 403 to requests whose credentials were not recorded."""
        self._slower = slower
        self._worst: dict[tuple[str, str], tuple[float, Pair, RecordedAnswer, list[Found]]] = {}

    def skip(self, why: str) -> None:
        self.skipped += 1
        self.skipped_why[why] += 1

    def add(self, pair: Pair, answer: RecordedAnswer, took: float, noted: list[Found]) -> None:
        """Note the result of one pair."""
        self.compared += 1
        self.withheld.update(pair.request.withheld)
        if any(each.kind == "unanswered" for each in noted):
            self.unanswered += 1
        else:
            self.sides.add(pair, answer, took)
        if not noted:
            return
        self.different += 1
        if answer.status in (401, 403) and pair.answer.status < 400:
            self.refused += 1
        for key in {(each.kind, each.place) for each in noted}:
            self._note(key, pair, [each for each in noted if (each.kind, each.place) == key])
        self._keep(pair, answer, noted)

    def _note(self, key: tuple[str, str], pair: Pair, noted: list[Found]) -> None:
        if key not in self.groups and len(self.groups) >= MOST_GROUPS:
            key = ("value", "elsewhere")
        group = self.groups.setdefault(key, DifferenceGroup(*key))
        group.count += 1
        worst = max(noted, key=lambda each: each.gap)
        if group.count == 1 or worst.gap > group.gap:
            group.gap, group.pair, group.detail = worst.gap, pair.number, worst.detail

    def _keep(self, pair: Pair, answer: RecordedAnswer, noted: list[Found]) -> None:
        """Retain the worst pair of each kind and place, and of these the worst: further ones tell nothing new."""
        if len(pair.answer.body) + len(answer.body) > LARGEST_SHOWN:
            return
        if len(pair.request.body) > LARGEST_SHOWN:
            pair = replace(pair, request=replace(pair.request, body=b"", why="too long to be shown"))
        worst = max(noted, key=_weight)
        key, weight = (worst.kind, worst.place), _weight(worst)
        if key not in self._worst or weight > self._worst[key][0]:
            self._worst[key] = (weight, pair, answer, noted)
        if len(self._worst) > WORST:
            del self._worst[min(self._worst, key=lambda each: self._worst[each][0])]

    def worst(self) -> list[tuple[Pair, RecordedAnswer, list[Found]]]:
        entries = sorted(self._worst.values(), key=lambda entry: entry[0], reverse=True)
        return [entry[1:] for entry in entries]

    def ordered(self) -> list[DifferenceGroup]:
        """The groups, the most serious first."""

        def rank(group: DifferenceGroup) -> tuple[int, int]:
            return (SERIOUS.index(group.kind) if group.kind in SERIOUS else len(SERIOUS), -group.count)

        return sorted(self.groups.values(), key=rank)

    def slowdowns(self) -> list[str]:
        """Sentences about latencies and stages that are slower than is allowed; none without a limit."""
        if not self._slower or not self.sides.recorded.total:
            return []
        figures = {
            **{name: pair for name, pair in self.sides.latency().items() if name != "p99"},
            **{f"stage {name}": pair for name, pair in self.sides.stage_means().items()},
        }
        return [
            f"{name} is slower: {pair['recorded']:.3g} ms recorded, {pair['replayed']:.3g} ms replayed"
            for name, pair in figures.items()
            if pair["replayed"] > self._slower * pair["recorded"] + 0.1
        ]

    @property
    def exit_code(self) -> int:
        return 1 if self.different or self.slowdowns() or not self.compared else 0

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "agree": not self.exit_code,
            "compared": self.compared,
            "different": self.different,
            "unanswered": self.unanswered,
            "skipped": dict(self.skipped_why),
            "groups": [vars(group) for group in self.ordered()],
            "latency_ms": self.sides.latency(),
            "stages_ms": self.sides.stage_means(),
            "slower": self.slowdowns(),
        }
