"""A CPython 3.10 with MegEngine, which has no packages for newer ones."""

from __future__ import annotations

from support import environments, interpreters


def interpreter() -> str:
    """The interpreter of that environment; empty where there is no CPython 3.10."""
    base = interpreters.found().get("3.10", "")
    return environments.python_with("megengine-1.13.0", "megengine==1.13.0", "numpy<1.24", base=base) if base else ""
