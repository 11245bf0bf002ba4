"""When a worker that serves well is replaced all the same: it has served enough, or has grown too large.

A successor takes its time to load. Where it would be no better than the worker before it, or cannot be had, it is not
tried again and again, but later and later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from panglot.engine.workers.restarts import Pace
from panglot.engine.workers.worker import Worker
from panglot.settings import Settings
from panglot.terminal.text import counted

MIB = 1 << 20
SELDOM = 16
"""How many times `restart_delay_max` passes between replacements that have not helped so far."""

log = logging.getLogger("panglot.engine")


class Wear:
    """Decides for one pool. The supervisor asks it, and replaces the worker when there is a reason."""

    def __init__(self, settings: Settings) -> None:
        longest = settings.restart_delay_max
        self.settings = settings
        self._grown = Pace(settings.restart_delay, longest)
        """Replacements of workers that outgrew the limit soon after they were ready."""
        self._hopeless = Pace(longest, SELDOM * longest)
        """Replacements of workers that were beyond the limit when they were ready."""
        self._failed = Pace(settings.restart_delay, SELDOM * longest)
        """Successors that did not become ready."""
        self._told = False

    def ready(self, worker: Worker) -> None:
        """Note how much memory a worker needs before it has run anything."""
        if self.settings.worker_memory:
            worker.memory_needed = worker.memory()

    def succeeded(self) -> None:
        self._failed.reset()

    def failed(self, now: float) -> float:
        """Note that a successor has not become ready; how many seconds no other is tried."""
        self._failed.done(now)
        return self._failed.wait(now)

    def reloaded(self) -> None:
        """Begin anew: the script is another."""
        self._hopeless.reset()
        self._told = False

    def reason(self, worker: Worker, now: float, about: Mapping[str, Any]) -> str:
        """Why a worker is to be replaced now; empty: it is not. `about` goes with a line of the log."""
        settings = self.settings
        # For every reason: the next successor would probably not become ready either.
        if self._failed.wait(now):
            return ""
        if settings.worker_max_requests and worker.served >= settings.worker_max_requests:
            return f"it has served {counted(worker.served, 'request')}"
        if settings.worker_memory and (used := worker.memory()) > settings.worker_memory:
            pace = self._pace(worker, now, about)
            if pace is None or not pace.wait(now):
                if pace is not None:
                    pace.done(now)
                return f"it holds {used // MIB} MiB of memory"
        return ""

    def _pace(self, worker: Worker, now: float, about: Mapping[str, Any]) -> Pace | None:
        """The pace for replacing a worker that is too large; None where no pause is needed."""
        if worker.memory_needed > self.settings.worker_memory:
            if not self._told:
                self._told = True
                # A pace allows the first time at once; here even the first replacement has to wait.
                self._hopeless.done(now)
                log.warning(
                    "%s holds %d MiB of memory once loaded, before any request: more than worker_memory (%d MiB), "
                    "so a new one is no better; it serves on, and is seldom replaced (fix: --worker-memory well "
                    "above %dMiB, or 0 for no limit)",
                    worker, worker.memory_needed // MIB, self.settings.worker_memory // MIB,
                    worker.memory_needed // MIB, extra=about,
                )  # fmt: skip
            return self._hopeless
        return self._grown if now - worker.since < self.settings.restart_delay_max else None
