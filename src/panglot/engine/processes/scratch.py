"""Private, writable working directories for workers, in one folder that is removed when the server ends."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from panglot.machine.temporary import Temporary

PREFIX = "panglot-run-"


class Scratch:
    """Makes folders that hold the given links, by relative path. With no links it makes nothing."""

    def __init__(self, links: Mapping[str, Path]) -> None:
        self.links = links
        self._root = Temporary(PREFIX)

    def folder(self, name: str) -> str:
        """Make a folder of that name with the links in it; empty when there are no links. Raises OSError."""
        if not self.links:
            return ""
        folder = self._root.path() / name
        for inside, target in self.links.items():
            link = folder / inside
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        return str(folder)

    def remove(self, name: str) -> None:
        if self.links:
            shutil.rmtree(self._root.path() / name, ignore_errors=True)

    def close(self) -> None:
        self._root.close()
