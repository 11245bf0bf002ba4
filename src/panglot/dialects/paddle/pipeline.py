"""The `config.yml` of a Paddle Serving pipeline beside a script: the names by which its clients call the service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from panglot_worker.files.package_files import UnreadableFile, text

NAME = "config.yml"
SIBLINGS = ("serving_python", "pdserving", "serving")
"""Folders beside the script's own in which projects have this file."""
KEY = re.compile(r"""( *)(["']?)([\w.-]+)\2 *:""")


def operations(script: Path, folder: Path) -> tuple[str, ...]:
    """The names of the pipeline's operations; empty when there is no such file."""
    folders = [script.parent, folder, *(script.parent.parent / name for name in SIBLINGS)]
    for file in dict.fromkeys(folder / NAME for folder in folders):
        try:
            names = tuple(_names(text(file)))
        except (OSError, UnreadableFile):
            continue
        if names:
            return names
    return ()


def _names(source: str) -> Iterator[str]:
    """The keys one level below `op`. Nothing else of the file is read."""
    inside, indent = False, 0
    for line in source.splitlines():
        match = KEY.match(line)
        if match is None:
            continue
        depth = len(match[1])
        if depth == 0:
            inside, indent = match[3] == "op", 0
        elif inside and depth == (indent := indent or depth):
            yield match[3]
