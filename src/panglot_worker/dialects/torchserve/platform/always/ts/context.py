"""The context that handlers get."""

from panglot_worker.compat.model_context import Context, RequestProcessor

__all__ = ["Context", "RequestProcessor"]
