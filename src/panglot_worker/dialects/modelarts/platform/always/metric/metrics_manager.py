"""Latencies a script may report. They are stored here; Panglot's own are in /metrics."""

from __future__ import annotations

from typing import Dict

ENDINGS = ("_LatencyPreprocess", "_LatencyInference", "_LatencyPostprocess", "_LatencyOverall")


class Metric:
    """Numbers reported so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.total = 0.0
        self.last = 0.0

    def update(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.last = value


class Metrics(Dict[str, Metric]):
    """Has every metric whose name ends as the platform's do, for any model name."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.endswith(ENDINGS)

    def __missing__(self, name: str) -> Metric:
        if name not in self:
            raise KeyError(name)
        self[name] = Metric(name)
        return self[name]


class MetricsManager:
    metrics = Metrics()
