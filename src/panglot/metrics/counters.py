"""Counters and histograms: plain numbers, turned into text only when somebody reads them.

Histograms double: bucket n counts what is above 2^(n-1) and at most 2^n, so that counting costs one list access.
Labels are route templates, stages and reasons from the code, never anything a client sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from panglot.metrics.runs import SharedRuns
from panglot.metrics.script_figures import ScriptFigures
from panglot_worker.line.wire import STAGES

FIRST, LAST = 6, 28
"""Buckets run from 64 microseconds to 134 seconds."""

WORKER_COUNTERS = {
    "panglot_answer_errors_total": "answers with status 200 that say by the platform's convention that they failed",
    "panglot_worker_net_refused_total": "connections of scripts that worker_net refused",
}
"""What workers of every dialect may count, by name; a contract adds its own."""

FORMER_NAMES = {
    "panglot_placements": "panglot_places",
    "panglot_request_memory_bytes": "panglot_held_bytes",
}
"""Gauges that were renamed, by their names of today. They are shown under the old name too, until the next release."""

Labels = dict[str, str]
Gauge = tuple[str, str, Labels, float]
"""Name, help, labels and value."""


class Histogram:
    """Counts values in buckets; the upper limit of each is a power of two."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * 64
        self.total = 0

    def add(self, value: int) -> None:
        """Count a duration in microseconds, or any whole number; 0 counts with 2."""
        self.counts[(value - 1).bit_length()] += 1
        self.total += value

    def merge(self, other: Histogram) -> None:
        """Add all that another has counted."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def count(self) -> int:
        return sum(self.counts)

    def lines(self, name: str, labels: Labels, first: int, last: int, scale: float) -> Iterator[str]:
        """The lines of this series in the Prometheus text form, with buckets from 2^first to 2^last."""
        below = sum(self.counts[:first])
        for exponent in range(first, last):
            below += self.counts[exponent]
            yield f"{name}_bucket{wording({**labels, 'le': f'{2**exponent * scale:.6g}'})} {below}"
        yield f"{name}_bucket{wording({**labels, 'le': '+Inf'})} {self.count}"
        yield f"{name}_sum{wording(labels)} {self.total * scale:.6f}"
        yield f"{name}_count{wording(labels)} {self.count}"


class PoolMetrics:
    """What one pool counts for itself."""

    def __init__(self) -> None:
        self.queue_time = Histogram()
        self.run_time = Histogram()
        self.batch_size = Histogram()
        self.runs = SharedRuns()
        self.last_reply = 0.0
        """When a worker last answered, by the engine's clock."""


class Metrics:
    """All that is counted. The engine and the web add; `/metrics` reads."""

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.latency: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.waited_for_jobs = 0
        """Microseconds of `latency` in which clients waited for jobs to be stored or to end."""
        self.stages = tuple(Histogram() for _ in STAGES)
        self.pools: defaultdict[str, PoolMetrics] = defaultdict(PoolMetrics)
        """Pools by name, which is empty where the package has only one."""
        self.released: defaultdict[str, int] = defaultdict(int)
        self.dropped: defaultdict[str, int] = defaultdict(int)
        self.restarts: defaultdict[str, int] = defaultdict(int)
        self.scaled: defaultdict[str, int] = defaultdict(int)
        self.reruns: defaultdict[str, int] = defaultdict(int)
        self.sleeps: defaultdict[str, int] = defaultdict(int)
        self.wakes = 0
        self.refused: defaultdict[str, int] = defaultdict(int)
        self.fetches: defaultdict[str, int] = defaultdict(int)
        self.abandoned: defaultdict[str, int] = defaultdict(int)
        self.abandoned_seconds: defaultdict[str, float] = defaultdict(float)
        """Calls that ran when nobody waited for them any more, and how long they did, by how they ended."""
        self.saved_seconds = 0.0
        self.log_dropped = 0
        self.log_lines_dropped: Callable[[], int] | None = None
        """How many lines of the log were lost, where this process writes one."""
        self.script: defaultdict[str, float] = defaultdict(float)
        self.figures = ScriptFigures()

    def render(self, gauges: Iterable[Gauge], counted_by_workers: Mapping[str, str]) -> str:
        """The Prometheus text form. `counted_by_workers` are the counters of the dialect's own, with their meaning."""
        lines: list[str] = []
        counters: tuple[tuple[str, str, str, Mapping[str, float]], ...] = (
            (
                "panglot_batches_released_total",
                "batches sent to a worker, by why they were released",
                "reason",
                self.released,
            ),
            ("panglot_dropped_total", "requests dropped before the script saw them", "reason", self.dropped),
            ("panglot_worker_restarts_total", "workers replaced", "reason", self.restarts),
            ("panglot_workers_scaled_total", "workers added and removed by autoscaling", "direction", self.scaled),
            ("panglot_sleeps_total", "times a model went to sleep", "reason", self.sleeps),
            ("panglot_reruns_total", "items run again after a failed batch or a dead worker", "reason", self.reruns),
            (
                "panglot_fetches_total",
                "addresses in requests that were fetched, by the outcome",
                "outcome",
                self.fetches,
            ),
            (
                "panglot_abandoned_calls_total",
                "calls that ran when nobody waited for them any more, by how they ended",
                "end",
                self.abandoned,
            ),
            ("panglot_abandoned_seconds_total", "how long these ran on", "end", self.abandoned_seconds),
            ("panglot_connections_refused_total", "connections and requests refused by a limit", "limit", self.refused),
        )
        lines += self._answered()
        for name, about, label, values in counters:
            lines += heading(name, about, "counter")
            lines += [f"{name}{wording({label: key})} {count:.12g}" for key, count in sorted(values.items())]
        name = "panglot_saved_seconds_total"
        lines += heading(name, "time that interrupted and killed calls would have taken by the mean of all", "counter")
        lines.append(f"{name} {self.saved_seconds:.6f}")
        lines += heading(
            "panglot_log_dropped_bytes_total", "script output and records dropped by the rate limit", "counter"
        )
        lines.append(f"panglot_log_dropped_bytes_total {self.log_dropped}")
        lines += heading("panglot_wakes_total", "times a model was woken", "counter")
        lines.append(f"panglot_wakes_total {self.wakes}")
        lines += self._lost_lines()
        lines += self._worker_counters({**counted_by_workers, **WORKER_COUNTERS})
        lines += self._histograms()
        lines += _gauges(gauges)
        lines += self.figures.lines(heading, wording)
        return "\n".join(lines) + "\n"

    def render_server(self, gauges: Iterable[Gauge]) -> str:
        """What belongs to no model, where there are several."""
        name = "panglot_connections_refused_total"
        lines = [*self._answered(), *heading(name, "connections and requests refused by a limit", "counter")]
        lines += [f"{name}{wording({'limit': limit})} {count}" for limit, count in sorted(self.refused.items())]
        return "\n".join([*lines, *self._lost_lines(), *_gauges(gauges)]) + "\n"

    def _answered(self) -> list[str]:
        lines = heading("panglot_requests_total", "requests answered", "counter")
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f"panglot_requests_total{wording({'route': route, 'status': str(status)})} {count}")
        return lines

    def _lost_lines(self) -> list[str]:
        if self.log_lines_dropped is None:
            return []
        return lost_lines(self.log_lines_dropped())

    def _worker_counters(self, counters: Mapping[str, str]) -> list[str]:
        lines: list[str] = []
        for name, about in counters.items():
            lines += heading(name, about, "counter")
            lines += [
                f"{series} {n:g}" for series, n in sorted(self.script.items()) if series.partition("{")[0] == name
            ]
        return lines

    def _histograms(self) -> list[str]:
        name = "panglot_request_seconds"
        lines = heading(name, "from the request's first byte to its answer", "histogram")
        for route, histogram in sorted(self.latency.items()):
            lines += histogram.lines(name, {"route": route}, FIRST, LAST, 1e-6)
        name = "panglot_queue_seconds"
        lines += heading(name, "waiting for a worker", "histogram")
        for pool, counted in self.pools.items():
            lines += counted.queue_time.lines(name, _pool(pool), FIRST, LAST, 1e-6)
        if any(self.pools):
            name = "panglot_pool_seconds"
            lines += heading(name, "from being sent to a worker of a pool to its reply", "histogram")
            for pool, counted in self.pools.items():
                lines += counted.run_time.lines(name, _pool(pool), FIRST, LAST, 1e-6)
        name = "panglot_stage_seconds"
        lines += heading(name, "time of each stage in the worker", "histogram")
        for stage, histogram in zip(STAGES, self.stages, strict=True):
            lines += histogram.lines(name, {"stage": stage}, FIRST, LAST, 1e-6)
        name = "panglot_batch_size"
        lines += heading(name, "items per script call", "histogram")
        for pool, counted in self.pools.items():
            lines += counted.batch_size.lines(name, _pool(pool), 0, 12, 1)
        return lines


def _pool(name: str) -> Labels:
    return {"pool": name} if name else {}


def _gauges(gauges: Iterable[Gauge]) -> list[str]:
    families: dict[str, list[str]] = {}
    for name, about, labels, value in gauges:
        former = FORMER_NAMES.get(name)
        for shown in (name, former) if former else (name,):
            meaning = about if shown == name else f"former name of {name}"
            family = families.setdefault(shown, heading(shown, meaning, "gauge"))
            family.append(f"{shown}{wording(labels)} {value:g}")
    return [line for family in families.values() for line in family]


def merged(texts: Iterable[tuple[Labels, str]]) -> str:
    """Several texts of the Prometheus form as one: each with further labels, and what has one name together."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for labels, text in texts:
        more = wording(labels)[1:-1]
        headings: list[str] = []
        values: list[str] = []
        for line in text.splitlines():
            if line.startswith("# HELP "):
                headings, values = families.setdefault(line.split(" ", 3)[2], ([], []))
            if line.startswith("#"):
                headings += [] if line in headings else [line]
            else:
                values.append(_with(line, more))
    return "\n".join(line for headings, values in families.values() for line in (*headings, *values)) + "\n"


def _with(line: str, labels: str) -> str:
    """A line of a series with further labels before its own."""
    series, space, value = line.rpartition(" ")
    name, brace, own = series.partition("{")
    if not labels:
        return line
    return f"{name}{{{labels},{own}{space}{value}" if brace else f"{name}{{{labels}}}{space}{value}"


def heading(name: str, about: str, kind: str) -> list[str]:
    """The two lines that stand above the values of a series."""
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def lost_lines(count: int) -> list[str]:
    """The series of the log lines that were lost."""
    name = "panglot_log_dropped_lines_total"
    return [*heading(name, "log lines dropped because nobody read them", "counter"), f"{name} {count}"]


def wording(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
