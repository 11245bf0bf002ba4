"""Panglot serves inference scripts, unmodified, behind one fast and safe HTTP server."""

from __future__ import annotations

__version__ = "0.2.0"
