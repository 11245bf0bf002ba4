"""How long calls may run. A job may have a limit of its own, which says nothing about the calls beside and behind it.

A worker that runs several calls at once is asked to end the job that has passed its limit, and goes on with the others.
Where one call runs at a time, nothing but the end of the process is sure to end it. This module only decides.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from panglot.engine.call import RUNNING, Call
from panglot.settings import Settings

if TYPE_CHECKING:
    from panglot.engine.workers.worker import Worker


def late_jobs(worker: Worker, now: float) -> list[Call]:
    """The jobs of a worker that runs several calls which have run for longer than their own limits."""
    if worker.slots == 1:
        return []
    running = (call for call in worker.in_flight.values() if call.state == RUNNING and call.run_limit)
    return [call for call in running if now - call.dispatched > call.run_limit]


def overrun(worker: Worker, settings: Settings, now: float) -> float:
    """The limit that a call of a worker has passed, and the grace with it; 0: none has."""
    begun = list(itertools.islice(worker.in_flight.values(), max(1, worker.begun)))
    limits = [call.run_limit or settings.effective_run_timeout for call in begun]
    if worker.slots > 1:
        runs = zip((call.dispatched for call in begun), limits, strict=True)
    else:
        runs = zip((worker.busy_since,), (max(limits),), strict=True)
    return max((limit for since, limit in runs if now - since > limit + settings.kill_grace), default=0.0)
