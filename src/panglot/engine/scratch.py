"""Private, writable working directories for workers, under one folder that goes when the server goes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

PREFIX = "panglot-run-"
FRESH = 60.0
"""Seconds a folder without a lock is left alone: its server may just be starting."""


class Scratch:
    """Makes folders that hold the given links, by relative path. With no links it makes nothing."""

    def __init__(self, links: Mapping[str, Path]) -> None:
        self.links = links
        self._root: Path | None = None
        self._lock = -1

    def folder(self, name: str) -> str:
        """A new folder of that name, with the links in it; empty when there are none to make."""
        if not self.links:
            return ""
        folder = self._made_root() / name
        for inside, target in self.links.items():
            link = folder / inside
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        return str(folder)

    def _made_root(self) -> Path:
        if self._root is None:
            sweep()
            self._root = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = os.open(self._root, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self._root

    def remove(self, name: str) -> None:
        if self._root is not None:
            shutil.rmtree(self._root / name, ignore_errors=True)

    def close(self) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            os.close(self._lock)
            self._root = None


def sweep() -> None:
    """Remove what servers left behind that were killed: folders nobody holds the lock of."""
    now = time.time()
    for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            mine = folder.stat().st_uid == os.getuid()
            if mine and now - folder.stat().st_mtime > FRESH and is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def is_abandoned(folder: Path) -> bool:
    """Whether the server that made such a folder has gone."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
