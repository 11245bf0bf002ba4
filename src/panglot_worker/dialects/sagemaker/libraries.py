"""Libraries of the script's interpreter, which a worker itself does not need."""

from __future__ import annotations

import importlib
from typing import Any


def library(name: str) -> Any:
    """A module that only some packages need. Raises ImportError where it is not installed."""
    return importlib.import_module(name)
