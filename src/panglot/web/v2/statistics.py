"""The counts of a model as Triton has them: inferences are rows, executions are runs."""

from __future__ import annotations

import time
from typing import Any

from panglot.metrics.counters import Histogram, Metrics, PoolMetrics
from panglot.metrics.runs import Runs
from panglot.web.models import Model
from panglot.web.v2.routes import MADE_BY_MODELS, NAMES, RPC_NAMES

STAGES = ("decode", "preprocess", "inference", "postprocess", "encode")


def statistics(model: Model) -> dict[str, Any]:
    """The counts of a model since it was loaded, over all of its routes. Times are in nanoseconds."""
    metrics = model.metrics
    names = {MADE_BY_MODELS, *NAMES.values(), *RPC_NAMES.values(), *(route.name for route in model.contract.routes)}
    answered = [(status, count) for (route, status), count in metrics.requests.items() if route in names]
    good = sum(count for status, count in answered if status == 200)
    bad = sum(count for status, count in answered if status != 200)
    queue = Histogram()
    for pool in metrics.pools.values():
        queue.merge(pool.queue_time)
    total = sum(counted.total for route, counted in metrics.latency.items() if route in names)
    computed = _computed(metrics)
    # Of a pipeline the pool in which most rows shared runs.
    pool = max(metrics.pools.values(), key=lambda pool: pool.runs.rows, default=PoolMetrics())
    runs = _runs(pool, good, computed)
    return {
        "name": model.name,
        "version": model.version,
        "last_inference": _last(metrics),
        "inference_count": good + pool.runs.rows - pool.runs.calls,
        "execution_count": sum(of_size.count for of_size in runs.values()),
        "inference_stats": {
            "success": _lasted(good, total),
            "fail": _lasted(bad, 0),
            "queue": _lasted(good, queue.total),
            **_in_parts(good, computed),
            "cache_hit": _lasted(0, 0),
            "cache_miss": _lasted(0, 0),
        },
        "batch_stats": [{"batch_size": rows, **_in_parts(runs[rows].count, runs[rows])} for rows in sorted(runs)],
        "memory_usage": [],
    }


def _computed(metrics: Metrics) -> Runs:
    """The times of all calls, whether they shared runs or not."""
    spent = {name: stage.total for name, stage in zip(STAGES, metrics.stages, strict=True)}
    before, after = spent["decode"] + spent["preprocess"], spent["postprocess"] + spent["encode"]
    return Runs(0, before, spent["inference"], after)


def _runs(pool: PoolMetrics, good: int, computed: Runs) -> dict[int, Runs]:
    """All runs by their rows: those that were shared, and, of one row, one for every other call."""
    shared = pool.runs
    alone = good - shared.calls
    runs = dict(shared.by_rows)
    if alone > 0:
        once = runs.get(1, Runs())
        runs[1] = Runs(
            once.count + alone,
            once.input_us + max(0, computed.input_us - shared.totals.input_us),
            once.infer_us + max(0, computed.infer_us - shared.totals.infer_us),
            once.output_us + max(0, computed.output_us - shared.totals.output_us),
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
