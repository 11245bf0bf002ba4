"""Puts one load after the other on a target, and computes the figures of each."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from panglot.errors import StartError
from panglot.terminal.text import counted
from panglot.tools.bench.histogram import FineHistogram
from panglot.tools.bench.load import LoadOutcome, LoadPlan
from panglot.tools.bench.process_cost import CostWatch
from panglot.tools.bench.target import Batches, BenchTarget

SHARES = (50, 90, 95, 99, 99.9)
SLICES = 10
"""The slices of a run. The scatter between them tells how sure a figure is."""
STAGE = re.compile(r"([\w.-]+);dur=([\d.]+)")
BOTTLENECK = 0.85
"""The share of its core from which on the load generator itself is the bottleneck."""
LATE_MS = 2.0


@dataclass(frozen=True)
class Load:
    """A load: `concurrency` requests under way at any time, or `rate` begun per second."""

    concurrency: int = 0
    rate: float = 0.0

    def __str__(self) -> str:
        return f"{self.rate:g}/s" if self.rate else f"{self.concurrency} at once"


@dataclass(frozen=True)
class Options:
    """How each load is put on the target. Times are seconds."""

    duration: float = 10.0
    warmup: float = 1.0
    even: bool = False
    connections: int = 512
    timeout: float = 60.0
    seed: int = 1
    check: bool = False


@dataclass
class Level:
    """The figures of one load. Times are milliseconds."""

    load: Load
    seconds: float
    requests: int
    throughput: float
    latency: dict[str, float]
    histogram: dict[str, int]
    statuses: dict[str, int]
    errors: dict[str, int]
    unanswered: int
    stages: dict[str, dict[str, float]]
    batches: dict[str, int]
    """How many batches had at most this many items, and more than the size before."""
    mean_batch: float | None
    cost: dict[str, Any]
    generator: dict[str, float]
    checked: int = 0
    wrong: int = 0
    first_wrong: str = ""
    slices: list[dict[str, float]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        refused = sum(count for status, count in self.statuses.items() if int(status) >= 400)
        return refused + sum(self.errors.values()) + self.unanswered

    def warnings(self) -> list[str]:
        """The reasons to doubt these figures, in sentences."""
        warnings = []
        if self.generator["cpu"] > BOTTLENECK:
            warnings.append(f"at {self.load} the load generator itself was the bottleneck")
        elif self.load.rate and self.generator["late_p99"] > LATE_MS:
            late = self.generator["late_p99"]
            warnings.append(
                f"at {self.load} one in a hundred requests went out {late:.1f} ms late: this machine is too busy"
            )
        if self.unanswered:
            warnings.append(f"at {self.load} no answer came to {counted(self.unanswered, 'request')}")
        return warnings


def measure(
    target: BenchTarget,
    loads: Sequence[Load],
    options: Options,
    report: Callable[[Level], None],
    begins: Callable[[Load], None] = lambda load: None,
) -> None:
    """Put each load on the target in turn, and report its figures. Raises StartError when the generator fails."""
    for load in loads:
        begins(load)
        before = target.batches()
        watch = CostWatch(target.pid)
        started = time.monotonic()
        generator = _generate(target, load, options)
        try:
            # The generator measures its own warm-up and run: the watch only has to cover nearly the same seconds.
            time.sleep(max(0.0, options.warmup - (time.monotonic() - started)))
            watch.begin()
            time.sleep(options.duration)
            cost = watch.end()
            outcome = _outcome(generator)
        finally:
            generator.kill()
            generator.wait()
        report(_level(load, outcome, options, cost.as_dict(), target.batches().since(before)))


def _generate(target: BenchTarget, load: Load, options: Options) -> subprocess.Popen[str]:
    plan = LoadPlan(
        target.client.address.host,
        target.client.address.port,
        [base64.b64encode(request).decode() for request in target.requests],
        [base64.b64encode(answer).decode() for answer in target.answers] if options.check else [],
        target.client.address.secure,
        load.concurrency or 4,
        load.rate,
        options.even,
        options.duration,
        options.warmup,
        options.connections,
        options.timeout,
        options.seed,
        target.client.address.socket,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "panglot.tools.bench.load"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(plan)))
    process.stdin.close()
    # Else `communicate` would flush a closed file, and raise.
    process.stdin = None
    return process


def _outcome(process: subprocess.Popen[str]) -> LoadOutcome:
    output, errors = process.communicate()
    if process.returncode:
        raise StartError(f"the load generator failed: {errors.strip().rpartition(chr(10))[2]}")
    try:
        return LoadOutcome(**json.loads(output))
    except ValueError:
        raise StartError("the load generator ended early", fix="is there enough memory?") from None


def _level(load: Load, outcome: LoadOutcome, options: Options, cost: dict[str, Any], batches: Batches) -> Level:
    latencies = outcome.latencies
    histogram = FineHistogram().add(latencies)
    slowest = max(latencies, default=0)
    latency = {f"p{share:g}": min(slowest, histogram.percentile(share)) / 1000 for share in SHARES}
    mean = sum(latencies) / len(latencies) / 1000 if latencies else 0.0
    latency = {"mean": mean, "min": min(latencies, default=0) / 1000, **latency}
    latency["max"] = slowest / 1000
    late = FineHistogram().add(outcome.late)
    return Level(
        load,
        outcome.seconds,
        len(latencies),
        outcome.answered / outcome.seconds,
        {name: round(value, 4) for name, value in latency.items()},
        histogram.as_dict(),
        outcome.statuses,
        outcome.errors,
        outcome.unanswered,
        stage_times(outcome.timings),
        {str(size): count for size, count in sorted(batches.sizes.items())},
        batches.items / batches.count if batches.count else None,
        cost,
        {"cpu": round(outcome.cpu, 4), "late_p99": late.percentile(99) / 1000},
        len(latencies) if options.check else 0,
        outcome.wrong,
        outcome.first_wrong,
        _slices(outcome, options.duration),
    )


def stage_times(timings: Iterable[str]) -> dict[str, dict[str, float]]:
    """Mean, median and 99th percentile of every stage that the server names."""
    times: dict[str, list[float]] = defaultdict(list)
    for line in timings:
        for name, milliseconds in STAGE.findall(line):
            times[name].append(float(milliseconds))
    figures = {}
    for name, values in times.items():
        values.sort()
        last = len(values) - 1
        figures[name] = {
            "mean": round(sum(values) / len(values), 4),
            "p50": values[last // 2],
            "p99": values[round(last * 0.99)],
        }
    return figures


def _slices(outcome: LoadOutcome, duration: float) -> list[dict[str, float]]:
    """Throughput, median and 99th percentile of each slice of the run."""
    width = duration * 1e6 / SLICES
    slices: list[list[int]] = [[] for _ in range(SLICES)]
    for begun, latency in zip(outcome.begun, outcome.latencies, strict=True):
        slices[min(SLICES - 1, int(begun / width))].append(latency)
    figures = []
    for slice_latencies in slices:
        if slice_latencies:
            counts = FineHistogram().add(slice_latencies)
            middle, tail = counts.percentile(50) / 1000, counts.percentile(99) / 1000
            figures.append({"throughput": len(slice_latencies) / (width / 1e6), "p50": middle, "p99": tail})
    return figures
