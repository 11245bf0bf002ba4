"""What engine, pools and supervisors share: what is served, how, what is counted, and what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from panglot.engine.ray.cluster import Cluster
from panglot.metrics import Metrics
from panglot.package import Package
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
