"""Which launcher a pool has: on this machine, or on the nodes of a cluster."""

from __future__ import annotations

from panglot.engine.context import EngineContext
from panglot.engine.memory.pool_memory import PoolMemory
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.processes.launcher import Launcher
from panglot.engine.ray.launcher import NodeLauncher


def launcher(context: EngineContext, plan: PoolPlan, memory: PoolMemory) -> Launcher:
    if context.cluster is not None:
        return NodeLauncher(context, plan, memory, context.cluster)
    return Launcher(context, plan, memory)
