"""Settings that only model files have: none, but a table of their panglot.toml."""

from __future__ import annotations

from panglot.dialects.bare.declared import TABLE
from panglot.settings import Settings

__all__ = ["TABLES", "Settings"]

TABLES = (TABLE,)
