"""The platform's logger: INFO and above, on stdout. Plain `logging` shows warnings only, as it did there."""

from __future__ import annotations

import logging
import sys

LINE = "%(asctime)s [%(threadName)-12.12s] [%(filename)s:%(lineno)d] - %(levelname)s - %(message)s"


def getLogger(name: str = "model_service") -> logging.Logger:  # noqa: N802
    """A logger that shows INFO, whatever the script does with the root logger."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter(LINE, "%Y-%m-%d %H:%M:%S %Z"))
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.INFO)
    return logger


get_logger = getLogger
