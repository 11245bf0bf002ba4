"""Panglot serves inference scripts, unmodified, behind one fast and safe HTTP server."""

from __future__ import annotations

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    """The client's names, imported when first used: it needs the extra `client`."""
    if name not in ("AsyncClient", "CallError", "Client"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("panglot.client"), name)
