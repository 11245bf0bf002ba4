"""Every setting, declared once, and how flags, variables and files become one set of them."""

from __future__ import annotations

from panglot.settings.declaring import setting
from panglot.settings.table import Settings, flag, suggestion, table_of, variable

__all__ = ["Settings", "flag", "setting", "suggestion", "table_of", "variable"]
