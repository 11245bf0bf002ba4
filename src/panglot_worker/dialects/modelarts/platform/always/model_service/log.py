"""The platform's logger: INFO and above, on stdout.

Plain `logging` shows warnings, as it did there, and INFO once a script asks for it: `logger.setLevel(logging.INFO)`.
"""

from __future__ import annotations

import logging
import sys

LINE = "%(asctime)s [%(threadName)-12.12s] [%(filename)s:%(lineno)d] - %(levelname)s - %(message)s"


def getLogger(name: str = "model_service") -> logging.Logger:  # noqa: N802
    """A logger that shows INFO, whatever the script does with the root logger."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(_handler())
        logger.propagate = False
        logger.setLevel(logging.INFO)
    return logger


def show_own_loggers() -> None:
    """Show every line that a script's own loggers let through, also where the script sets up no handler.

    Python's handler of last resort drops what is below a warning. It is replaced, rather than one added to the root
    logger, because `logging.basicConfig` of a script has no effect once the root logger has a handler.
    """
    logging.lastResort = _handler()


def _handler() -> logging.Handler:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(LINE, "%Y-%m-%d %H:%M:%S %Z"))
    return handler


get_logger = getLogger
