"""A part of `context.metrics`."""

from panglot_worker.compat.model_metrics import MetricTypes

__all__ = ["MetricTypes"]
