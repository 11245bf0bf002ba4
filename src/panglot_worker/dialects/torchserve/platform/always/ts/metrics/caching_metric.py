"""A part of `context.metrics`."""

from panglot_worker.compat.model_metrics import ModelMetric as CachingMetric

__all__ = ["CachingMetric"]
