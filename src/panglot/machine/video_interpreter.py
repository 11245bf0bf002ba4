"""The interpreter that decodes videos where the script's own has no PyAV: the one Panglot runs in."""

from __future__ import annotations

import importlib.util
import sys


def python() -> str:
    """This interpreter where PyAV is installed for it, which is looked up and not imported; else nothing."""
    return sys.executable if importlib.util.find_spec("av") is not None else ""
