"""Logging as scripts find it on the platform: the logger `azmlinfsrv`, or what `logging.json` of the package says."""

from __future__ import annotations

import builtins
import logging
import logging.config
import os
import sys
from typing import Any

from panglot_worker.dialects.base import Package
from panglot_worker.errors import ScriptError
from panglot_worker.files.package_files import UnreadableFile, json_value

LOGGER = "azmlinfsrv"
FORMAT = "%(levelname).1s %(name)s - %(message)s"
"""Lines have no time: the server adds it."""


def configure_logging(package: Package) -> None:
    """Set logging up before the script is imported. Raises ScriptError for a `logging.json` that cannot be used."""
    file = os.path.join(package.folder, "logging.json")
    if os.path.isfile(file):
        try:
            logging.config.dictConfig(json_value(file))
        except (UnreadableFile, OSError, ValueError, TypeError, AttributeError, ImportError, KeyError) as error:
            fix = "it is the dictionary that logging.config.dictConfig takes"
            raise ScriptError("logging.json cannot be used: %s" % error, file, fix=fix) from error
        _print_to_logger()
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(FORMAT))
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    level = logging.getLevelName(str(package.options.get("log_level") or "INFO").upper())
    logger.setLevel(level if isinstance(level, int) else logging.INFO)
    # Else a script that calls `logging.basicConfig` would see each line twice.
    logger.propagate = False


def _print_to_logger() -> None:
    """Send `print` to standard output through the logger `azmlinfsrv.print`, as `logging.json` decides."""
    original = builtins.print
    logger = logging.getLogger(LOGGER + ".print")

    def print_to_logger(*objects: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: bool = False) -> None:
        if file is None or file is sys.stdout:
            logger.info((" " if sep is None else sep).join(map(str, objects)))
        else:
            original(*objects, sep=sep, end=end, file=file, flush=flush)

    builtins.print = print_to_logger
