"""The logger for scripts."""

from __future__ import annotations

import logging


def get_logger() -> logging.Logger:
    """A logger whose lines appear in the server's log."""
    logger = logging.getLogger("mosec")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    return logger
