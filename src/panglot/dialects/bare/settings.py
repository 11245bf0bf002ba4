"""Model files have no settings of their own, but a table of panglot.toml."""

from __future__ import annotations

from panglot.dialects.bare.declared import TABLE
from panglot.settings import Settings

__all__ = ["TABLES", "Settings"]

TABLES = (TABLE,)
