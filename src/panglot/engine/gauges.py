"""Figures of an engine that are read on demand, as /metrics shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from panglot.engine.interface import ASLEEP, WAKING
from panglot.engine.memory.buffers import Arena
from panglot.engine.pools.pool import Pool
from panglot.engine.workers.worker import READY
from panglot.settings.counts import exactly

if TYPE_CHECKING:
    from panglot.engine.sleep.engine_sleep import EngineSleep

Gauge = tuple[str, str, dict[str, str], float]
"""Name, help, labels and value."""
STATES = ("starting", "loading", "ready", "retiring")


def of_pools(pools: Sequence[Pool], live: int) -> list[Gauge]:
    """Queues and workers of each pool, and how many requests have no answer yet."""
    gauges: list[Gauge] = []
    labelled = [({"pool": pool.plan.name} if pool.plan.name else {}, pool) for pool in pools]
    for labels, pool in labelled:
        gauges.append(("panglot_queue_length", "requests waiting", labels, pool.dispatcher.waiting))
    about = "requests waiting that a busy worker has already"
    for labels, pool in labelled:
        gauges.append(("panglot_queue_ahead", about, labels, pool.dispatcher.ahead))
    for labels, pool in labelled:
        gauges.append(("panglot_queue_bytes", "bytes waiting", labels, pool.dispatcher.queue.bytes))
    gauges.append(("panglot_requests_in_progress", "requests accepted and not answered", {}, live))
    for labels, pool in labelled:
        states = dict.fromkeys(STATES, 0)
        for worker in pool.workers:
            states[worker.state] = states.get(worker.state, 0) + 1
        for state, count in states.items():
            gauges.append(("panglot_workers", "workers by state", {**labels, "state": state}, count))
    for labels, pool in labelled:
        gauges.append(("panglot_workers_wanted", "workers there are to be", labels, pool.supervisor.wanted))
    for labels, pool in labelled:
        for state, count in pool.supervisor.launcher.placements().items():
            gauges.append(("panglot_placements", "placements on nodes by state", {**labels, "state": state}, count))
    for labels, pool in labelled:
        nodes = Counter(worker.node for worker in pool.workers if worker.node)
        for node, count in sorted(nodes.items()):
            gauges.append(("panglot_node_workers", "workers by node", {**labels, "node": node}, count))
    return gauges


def sizes(pools: Sequence[Pool]) -> list[dict[str, Any]]:
    """How many workers each pool may have, is to have and has; and how that changed, where there is a range."""
    return [
        {
            "pool": pool.plan.name,
            "workers": (pool.supervisor.count or exactly(pool.supervisor.wanted or pool.supervisor.least)).plain,
            "wanted": pool.supervisor.wanted,
            "ready": sum(worker.state == READY for worker in pool.workers),
            **({"changes": [vars(change) for change in scaler.changes]} if scaler is not None else {}),
        }
        for pool, scaler in ((pool, pool.supervisor.autoscaler) for pool in pools)
    ]


def of_memory(bodies: Arena | None, between: Sequence[Arena], all_of_it: Sequence[Arena]) -> list[Gauge]:
    """How much is in shared memory, and how much memory that takes, also where it only waits for the next body."""
    gauges: list[Gauge] = []
    if bodies is not None:
        gauges.append(("panglot_shared_bodies", "bodies in shared memory", {}, bodies.used))
    if between:
        used = sum(shared.used for shared in between)
        gauges.append(("panglot_slots_in_use", "results in shared memory, between pools and models", {}, used))
    taken = sum(shared.bytes for shared in all_of_it)
    gauges.append(("panglot_shared_memory_bytes", "memory shared with the workers", {}, taken))
    return gauges


def of_sleep(sleeper: EngineSleep) -> list[Gauge]:
    """Whether a model sleeps, and the memory that it is taken to need."""
    about = "1 in the state that a model which may sleep is in"
    gauges: list[Gauge] = [
        ("panglot_model_state", about, {"state": state}, float(sleeper.state == state)) for state in (ASLEEP, WAKING)
    ]
    for kind, need in zip(("memory", "gpu_memory"), sleeper.need, strict=True):
        if need is not None:
            gauges.append(("panglot_memory_need_bytes", "memory that a model needs", {"kind": kind}, need))
    return gauges


def workers(pools: Sequence[Pool], now: float) -> list[dict[str, Any]]:
    """One entry for each worker, for the page and /status."""
    return [
        {
            "pool": pool.plan.name,
            "index": worker.index,
            "state": worker.state,
            "step": worker.step,
            "pid": worker.pid,
            "node": worker.node,
            "served": worker.served,
            "in_flight": len(worker.in_flight),
            "seconds": now - worker.since,
            "report": worker.report,
        }
        for pool in pools
        for worker in sorted(pool.workers, key=lambda worker: worker.index)
    ]
