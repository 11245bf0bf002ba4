"""Private, writable folders for workers, in one folder that is removed when the server ends."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from panglot.machine.temporary import Temporary

PREFIX = "panglot-run-"


class Scratch:
    """Makes folders to run in, which hold the given links, by relative path; and folders for files of requests, where
    the package stores these."""

    def __init__(self, links: Mapping[str, Path], stores_inputs: bool = False) -> None:
        self.links = links
        self.stores_inputs = stores_inputs
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

    def input_folder(self, name: str) -> str:
        """Make the folder for files of requests of a worker; empty when none are stored. Raises OSError."""
        if not self.stores_inputs:
            return ""
        folder = self._inputs(name)
        folder.mkdir(exist_ok=True)
        return str(folder)

    def remove(self, name: str) -> None:
        """Remove both folders of a worker."""
        if self.links:
            shutil.rmtree(self._root.path() / name, ignore_errors=True)
        if self.stores_inputs:
            shutil.rmtree(self._inputs(name), ignore_errors=True)

    def _inputs(self, name: str) -> Path:
        return self._root.path() / f"{name}-inputs"

    def close(self) -> None:
        self._root.close()
