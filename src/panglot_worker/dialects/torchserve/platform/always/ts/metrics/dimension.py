"""A part of `context.metrics`."""

from panglot_worker.compat.model_metrics import Dimension

__all__ = ["Dimension"]
