"""Modules of scripts by their names."""

import importlib
from typing import Any

DEFAULT_MODULE_NAME = "default_user_module_name"


def import_module(uri: Any, name: str = DEFAULT_MODULE_NAME, cache: Any = None) -> Any:
    """The script by its name: here it is importable, wherever it lies."""
    return importlib.import_module(name)
