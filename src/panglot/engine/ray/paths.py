"""Paths of this machine as nodes have them, and the other way round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

LINE_OF_FILE = 'File "'
"""As Python begins the lines of tracebacks that name a file."""


def there(value: Any, moved: Mapping[str, str]) -> Any:
    """A value as a node needs it: a path in a folder that was sent becomes its path on the node."""
    if isinstance(value, dict):
        return {key: there(inner, moved) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [there(inner, moved) for inner in value]
    if isinstance(value, str):
        flag, equals, rest = value.partition("=")
        # An argument of a command, such as --config=PATH.
        if equals and flag.startswith("-"):
            return flag + equals + str(there(rest, moved))
        for here, path in moved.items():
            if value == here or value.startswith(here + os.sep):
                return path + value[len(here) :]
    return value


def at_home(text: str, folders: Mapping[str, str]) -> str:
    """A traceback with the paths that its files have on this machine; any other text as it is."""
    if LINE_OF_FILE in text:
        for path, here in folders.items():
            text = text.replace(f"{LINE_OF_FILE}{path}/", f"{LINE_OF_FILE}{here}/")
    return text
