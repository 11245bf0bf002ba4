"""What engine, pools and supervisors share: what is served, how, what is counted, and what time it is."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

from panglot.engine.ray.cluster import Cluster
from panglot.engine.workers.event_log import EventLog
from panglot.engine.workers.shares import WHOLE, FrontShare
from panglot.metrics.counters import Metrics
from panglot.packages.package import Package
from panglot.settings import Settings


@dataclass(frozen=True)
class EngineContext:
    """One package as it is served by this process."""

    package: Package
    settings: Settings
    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    cluster: Cluster | None = None
    """Where the workers are; None: on this machine."""
    share: FrontShare = WHOLE
    """Which of the workers belong to this process."""

    @functools.cached_property
    def event_log(self) -> EventLog:
        """Logs what workers report."""
        return EventLog(self.settings.log_rate, self.clock, self.metrics)
