"""Which pools a package is made of, and which of them does which stage. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panglot.settings import Settings
from panglot.settings.counts import ANY, WorkerCount, exactly
from panglot.settings.pools import PoolSize
from panglot_worker.line.wire import STAGES

BEFORE, MAIN, AFTER = ("decode", "preprocess"), ("inference",), ("postprocess", "encode")


@dataclass(frozen=True)
class PoolPlan:
    """One pool: its stages and its size, and its position where it is one of a pipeline."""

    name: str = ""
    """Empty where the package has only this pool."""
    stages: tuple[str, ...] = STAGES
    workers: WorkerCount = ANY
    """0: as many as the script asks for, or 1."""
    max_batch: int = 0
    """0: what the script and the settings say."""
    device: str = ""
    first: bool = True
    last: bool = True

    def for_worker(self) -> dict[str, Any]:
        """What the pool's workers have to know; nothing when they do all stages."""
        if not self.name:
            return {}
        return {"name": self.name, "stages": list(self.stages), "first": self.first, "last": self.last}


WHOLE = PoolPlan()


def divided(pools: Mapping[str, PoolSize]) -> list[PoolPlan]:
    """The pools for these sizes. Stages without a pool of their own run in that of the inference."""
    before, main, after = (pools.get(name, PoolSize()) for name in ("preprocess", "inference", "postprocess"))
    if not before.workers and not after.workers:
        return [PoolPlan(workers=main.workers, max_batch=main.max_batch, device=main.device)]
    stages = (() if before.workers else BEFORE) + MAIN + (() if after.workers else AFTER)
    steps: list[tuple[str, PoolSize, tuple[str, ...]]] = [("preprocess", before, BEFORE)] if before.workers else []
    steps.append(("inference", main, stages))
    steps += [("postprocess", after, AFTER)] if after.workers else []
    return [
        PoolPlan(name, mine, size.workers, size.max_batch, size.device, index == 0, index == len(steps) - 1)
        for index, (name, size, mine) in enumerate(steps)
    ]


def fewest_workers(settings: Settings) -> int:
    """The fewest workers that a pool has by these settings; 0 where the script says how many."""
    plans = divided(settings.pools)
    main = next(plan for plan in plans if "inference" in plan.stages)
    return min((plan.workers or (settings.workers if plan is main else ANY)).for_fronts for plan in plans)


def too_late(pools: Sequence[Mapping[str, Any]]) -> str:
    """The problem of a script that asks for a pipeline when it serves already."""
    return f"the script now asks for pools ({listed(requested(pools))}), which cannot be made while it serves"


def listed(plans: Sequence[PoolPlan]) -> str:
    return ", ".join(f"{plan.name} x {plan.workers}" if plan.workers else plan.name for plan in plans)


def requested(pools: Sequence[Mapping[str, Any]]) -> list[PoolPlan]:
    """The pools that a script asks for, as its worker reported them."""
    last = len(pools) - 1
    return [
        PoolPlan(
            name=str(pool["name"]),
            stages=tuple(pool.get("stages") or MAIN),
            workers=exactly(int(pool["workers"])),
            max_batch=int(pool.get("max_batch") or 0),
            first=index == 0,
            last=index == last,
        )
        for index, pool in enumerate(pools)
    ]
