"""`mms.log.get_logger`: the platform's logger."""

from model_service.log import get_logger, getLogger

__all__ = ["getLogger", "get_logger"]
