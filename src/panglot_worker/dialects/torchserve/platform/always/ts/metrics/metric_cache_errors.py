"""What `context.metrics` raises."""

from panglot_worker.compat.model_metrics import MetricsCacheKeyError, MetricsCacheTypeError, MetricsCacheValueError

__all__ = ["MetricsCacheKeyError", "MetricsCacheTypeError", "MetricsCacheValueError"]
