"""Every setting, declared once, and how flags, variables and files become one set of them."""

from __future__ import annotations

from panglot.settings.all_settings import Settings, table_of
from panglot.settings.names import flag, suggestion, variable
from panglot.settings.setting import setting

__all__ = ["Settings", "flag", "setting", "suggestion", "table_of", "variable"]
