"""Calls that wait for company: one timer is set for them, however often the pool looks, for however many workers."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from panglot.engine.call import Call
from panglot.engine.context import EngineContext
from panglot.engine.pools.dispatching import Dispatcher
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.workers.lent_results import Lending
from panglot.engine.workers.worker import READY, Worker
from panglot.metrics.counters import Metrics
from panglot.packages.package import Package
from panglot.settings import Settings

WORKERS, CALLS = 4, 30


def dispatcher_of_idle_workers(wait_ms: float) -> Dispatcher:
    """A dispatcher with workers that have no process: what they are sent goes nowhere."""
    package = Package("none", Path(), Path("model.py"), "plain", "predict")
    context = EngineContext(package, Settings(max_wait_ms=wait_ms, max_batch=100), Metrics())
    supervisor = cast(Any, SimpleNamespace(workers=[], wanted=WORKERS))
    dispatcher = Dispatcher(context, PoolPlan(), Lending(0, 0), supervisor, itertools.count(1).__next__)
    for index in range(WORKERS):
        worker = Worker(cast(Any, None), index, index + 1, time.monotonic)
        worker.state, worker.batched, worker.max_batch = READY, True, 100
        dispatcher.workers.append(worker)
    return dispatcher


def timers(loop: asyncio.AbstractEventLoop) -> int:
    return sum(not timer.cancelled() for timer in cast(Any, loop)._scheduled)


def test_one_timer_for_all() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        before = timers(loop)
        dispatcher = dispatcher_of_idle_workers(2000)
        for number in range(CALLS):
            call = Call()
            call.id, call.arrived, call.deadline = number + 1, time.monotonic(), time.monotonic() + 60
            assert dispatcher.accept(call)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert timers(loop) == before + 1
        while dispatcher.queue.length:
            await asyncio.sleep(0.01)
        assert sum(len(worker.in_flight) for worker in dispatcher.workers) == CALLS

    asyncio.run(asyncio.wait_for(story(), 30))
