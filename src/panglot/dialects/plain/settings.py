"""Settings that only plain packages have."""

from __future__ import annotations

from panglot.settings import Settings

__all__ = ["TABLES", "Settings"]

TABLES = ("routes",)
"""Paths, and the functions of the script they lead to; read by `routes.py`."""
