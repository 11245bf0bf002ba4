"""`import log`: the platform's logger under its old name."""

from model_service.log import get_logger, getLogger

__all__ = ["getLogger", "get_logger"]
