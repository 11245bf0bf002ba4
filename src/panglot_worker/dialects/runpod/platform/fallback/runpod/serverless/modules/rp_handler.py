"""What kind of function a handler is."""

from __future__ import annotations

import inspect
from typing import Any


def is_generator(handler: Any) -> bool:
    """Whether a handler yields its results."""
    return inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler)
