"""The figures of the last second, from counters that only grow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from panglot.metrics.counters import Histogram, Metrics

PERCENTILES = (0.5, 0.95, 0.99)
PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Sample(NamedTuple):
    """One second: answers by how they ended, milliseconds of latency, requests that waited, CPU and memory."""

    when: float
    good: float
    refused: float
    failed: float
    p50: float
    p95: float
    p99: float
    waiting: int
    in_progress: int
    batch: float
    cpu: float
    """As a share of one core, the front and all workers together."""
    memory: int


@dataclass
class Counted:
    """The counters at some moment."""

    when: float
    answers: dict[int, int] = field(default_factory=dict)
    latency: list[int] = field(default_factory=lambda: [0] * 64)
    batches: int = 0
    items: int = 0


def counted(all_metrics: Iterable[Metrics], routes: frozenset[str], when: float) -> Counted:
    """The counters of the scripts' routes, now."""
    now, total = Counted(when), Histogram()
    for metrics in all_metrics:
        for (route, status), count in metrics.requests.items():
            if route in routes:
                now.answers[status // 100] = now.answers.get(status // 100, 0) + count
        for histogram in metrics.latency.values():
            total.merge(histogram)
        for pool in metrics.pools.values():
            now.batches += pool.batch_size.count
            now.items += pool.batch_size.total
    now.latency = total.counts
    return now


def between(before: Counted, now: Counted) -> tuple[list[float], list[float], float]:
    """Answers per second that were good, refused and failed; percentiles of latency; the mean size of batches."""
    seconds = max(now.when - before.when, 1e-3)
    rates = [
        sum(now.answers.get(kind, 0) - before.answers.get(kind, 0) for kind in kinds) / seconds
        for kinds in ((1, 2, 3), (4,), (5,))
    ]
    fresh = [after - earlier for after, earlier in zip(now.latency, before.latency, strict=True)]
    batches = now.batches - before.batches
    mean = (now.items - before.items) / batches if batches > 0 else 0.0
    return rates, [percentile(fresh, share) / 1000 for share in PERCENTILES], mean


def percentile(counts: Sequence[int], share: float) -> float:
    """The value that this share of a histogram's values stays below; inside of a bucket, by proportion."""
    wanted = sum(counts) * share
    below = 0
    for power, count in enumerate(counts):
        if count > 0 and below + count >= wanted:
            low = 2.0 ** (power - 1) if power else 0.0
            return low + (2.0**power - low) * (wanted - below) / count
        below += count
    return 0.0


class Processes:
    """CPU and memory of some processes, as they change."""

    def __init__(self) -> None:
        self._ticks: dict[int, tuple[float, int]] = {}

    def look(self, pids: Iterable[int], when: float) -> dict[int, tuple[float, int]]:
        """The share of a core since the last look, and bytes of memory, of each process that is still there."""
        samples: dict[int, tuple[float, int]] = {}
        seen: dict[int, tuple[float, int]] = {}
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    # The name in brackets may hold anything, brackets included.
                    words = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            ticks = int(words[11]) + int(words[12])
            seen[pid] = when, ticks
            before, earlier = self._ticks.get(pid, (when, ticks))
            used = (ticks - earlier) / TICKS / (when - before) if when > before else 0.0
            samples[pid] = used, int(words[21]) * PAGE
        self._ticks = seen
        return samples
