"""What workers report of themselves, and of requests that failed, in the log: up to a rate for each worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from panglot.metrics.counters import Metrics
from panglot.settings.units import show_size

log = logging.getLogger("panglot.engine")
LEAST_COST = 100
"""Bytes that a record counts for besides its text: a short one is work too."""
SECOND = 1.0


@dataclass
class WorkerShare:
    """The bytes logged for one worker in the present second, and the records left out since the last report."""

    since: float
    used: int = 0
    left_out: int = 0
    about: dict[str, Any] | None = None


class EventLog:
    """Writes log records on behalf of workers. Beyond the rate they are counted, and reported in one line a second.

    Otherwise a script that fails on every request would write its traceback thousands of times in a second, and a
    reader of the log would find nothing else in it.
    """

    def __init__(self, rate: int, clock: Callable[[], float], metrics: Metrics) -> None:
        self._rate = rate
        self._clock = clock
        self._metrics = metrics
        self._shares: dict[int | None, WorkerShare] = {}

    def write(self, level: int, worker: int | None, message: str, about: dict[str, Any]) -> None:
        """Log a record about a worker, unless it has used up its share. `about` goes with it, its traceback too."""
        now = self._clock()
        share = self._shares.setdefault(worker, WorkerShare(now))
        if now - share.since >= SECOND:
            share.since, share.used = now, 0
        size = len(message) + len(about.get("traceback", "")) + LEAST_COST
        share.used += size
        # The first record of a second is logged however long it is.
        if share.used <= self._rate or share.used == size:
            log.log(level, "%s", message, extra=about)
            return
        if not share.left_out:
            # Once for all records that are left out until the report: its timer runs from the first.
            share.about = {name: value for name, value in about.items() if name not in ("traceback", "request_id")}
            asyncio.get_running_loop().call_later(SECOND, self._report, share)
        share.left_out += 1
        self._metrics.log_dropped += size

    def _report(self, share: WorkerShare) -> None:
        """Say how many records of a worker are missing here."""
        count, share.left_out = share.left_out, 0
        message = "... %d more records about this worker are left out: they were more than %s in a second (--log-rate)"
        log.warning(message, count, show_size(self._rate), extra=share.about)
