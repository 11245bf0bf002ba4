"""The counts of a model as Triton has them: inferences are rows, executions are runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from panglot.metrics.counters import Metrics
from panglot.metrics.runs import Runs, SharedRuns
from panglot.web.front import Front
from panglot.web.models import Model
from panglot.web.v2.routes import MADE_BY_MODELS, NAMES, RPC_NAMES

STAGES = ("decode", "preprocess", "inference", "postprocess", "encode")

Counts = dict[str, Any]
"""Numbers by name, or further counts."""


async def statistics(front: Front, model: Model) -> dict[str, Any]:
    """The counts of a model since it was loaded, over all routes and in all fronts. Times are in nanoseconds."""
    others = await front.others.counts(model) if front.others is not None else []
    of_fronts = [counts(model), *others]
    return _described(model, _added(of_fronts), max(known["last"] for known in of_fronts))


def counts(model: Model) -> Counts:
    """The counts of a model in this front, as other fronts receive them. Times are in microseconds."""
    metrics = model.metrics
    names = {MADE_BY_MODELS, *NAMES.values(), *RPC_NAMES.values(), *(route.name for route in model.contract.routes)}
    answered = [(status, count) for (route, status), count in metrics.requests.items() if route in names]
    good = sum(count for status, count in answered if status == 200)
    return {
        "good": good,
        "bad": sum(count for _, count in answered) - good,
        "total": sum(counted.total for route, counted in metrics.latency.items() if route in names),
        "queue": sum(pool.queue_time.total for pool in metrics.pools.values()),
        "stages": {name: stage.total for name, stage in zip(STAGES, metrics.stages, strict=True)},
        "pools": {name: _of_pool(pool.runs) for name, pool in metrics.pools.items()},
        "last": _last(metrics),
    }


def _of_pool(runs: SharedRuns) -> Counts:
    by_rows = {str(rows): asdict(of_size) for rows, of_size in runs.by_rows.items()}
    return {"calls": runs.calls, "rows": runs.rows, "totals": asdict(runs.totals), "by_rows": by_rows}


def _added(of_fronts: Sequence[Counts]) -> Counts:
    """Counts of several fronts together; some fronts may lack a pool, or runs of some size."""
    sums: Counts = {}
    for name in dict.fromkeys(name for known in of_fronts for name in known):
        values = [known[name] for known in of_fronts if name in known]
        sums[name] = _added(values) if isinstance(values[0], dict) else sum(values)
    return sums


def _described(model: Model, known: Counts, last: int) -> dict[str, Any]:
    good, computed = known["good"], _computed(known["stages"])
    # Of a pipeline the pool in which most rows shared runs.
    pool = max(known["pools"].values(), key=lambda pool: int(pool["rows"]), default=_of_pool(SharedRuns()))
    runs = _runs(pool, good, computed)
    return {
        "name": model.name,
        "version": model.version,
        "last_inference": last,
        "inference_count": good + pool["rows"] - pool["calls"],
        "execution_count": sum(of_size.count for of_size in runs.values()),
        "inference_stats": {
            "success": _lasted(good, known["total"]),
            "fail": _lasted(known["bad"], 0),
            "queue": _lasted(good, known["queue"]),
            **_in_parts(good, computed),
            "cache_hit": _lasted(0, 0),
            "cache_miss": _lasted(0, 0),
        },
        "batch_stats": [{"batch_size": rows, **_in_parts(runs[rows].count, runs[rows])} for rows in sorted(runs)],
        "memory_usage": [],
    }


def _computed(spent: Counts) -> Runs:
    """The times of all calls, whether they shared runs or not."""
    before, after = spent["decode"] + spent["preprocess"], spent["postprocess"] + spent["encode"]
    return Runs(0, before, spent["inference"], after)


def _runs(pool: Counts, good: int, computed: Runs) -> dict[int, Runs]:
    """All runs by their rows: those that were shared, and, of one row, one for every other call."""
    alone, shared = good - pool["calls"], Runs(**pool["totals"])
    runs = {int(rows): Runs(**of_size) for rows, of_size in pool["by_rows"].items()}
    if alone > 0:
        once = runs.get(1, Runs())
        runs[1] = Runs(
            once.count + alone,
            once.input_us + max(0, computed.input_us - shared.input_us),
            once.infer_us + max(0, computed.infer_us - shared.infer_us),
            once.output_us + max(0, computed.output_us - shared.output_us),
        )
    return runs


def _last(metrics: Metrics) -> int:
    """When it last answered, in milliseconds since 1970; 0: never."""
    last = max((pool.last_reply for pool in metrics.pools.values()), default=0.0)
    return int((time.time() - (time.monotonic() - last)) * 1000) if last else 0


def _in_parts(count: int, runs: Runs) -> dict[str, dict[str, int]]:
    return {
        "compute_input": _lasted(count, runs.input_us),
        "compute_infer": _lasted(count, runs.infer_us),
        "compute_output": _lasted(count, runs.output_us),
    }


def _lasted(count: int, microseconds: int) -> dict[str, int]:
    return {"count": count, "ns": microseconds * 1000}
