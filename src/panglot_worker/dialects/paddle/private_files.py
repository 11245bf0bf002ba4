"""Files for scripts that open what they are given: in memory where the system allows it, and removed after."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import tempfile
import time
from typing import List

MEMORY = "/dev/shm"  # noqa: S108  only folders of mkdtemp are made there
PREFIX = "panglot-input-"
FRESH = 60.0
"""Seconds for which a folder without a lock is left alone: its worker makes it first, and locks it after that."""


class PrivateFiles:
    """A folder of this worker's own, made when first needed. A later worker removes the folder if this is killed."""

    def __init__(self) -> None:
        self._folder = ""
        self._lock = -1
        self._numbers = itertools.count(1)

    def write(self, content: bytes, ending: str, inside_folder: bool = False) -> str:
        """The path of a new file, or with `inside_folder` of a new folder that holds it alone. Raises OSError."""
        try:
            return self._written(content, ending, inside_folder)
        except OSError:
            # Containers often have a /dev/shm of 64 MiB: a large input goes to the disk instead.
            if not self._folder.startswith(MEMORY):
                raise
            self.close()
            self._make(tempfile.gettempdir())
            return self._written(content, ending, inside_folder)

    def _written(self, content: bytes, ending: str, inside_folder: bool) -> str:
        if not self._folder:
            self._make(MEMORY if os.access(MEMORY, os.W_OK) else tempfile.gettempdir())
        name = "input-%d" % next(self._numbers)
        path = os.path.join(self._folder, name)
        if inside_folder:
            os.mkdir(path, 0o700)
        file = os.path.join(path, name + ending) if inside_folder else path + ending
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
        return path if inside_folder else file

    def _make(self, folder: str) -> None:
        sweep(folder)
        self._folder = tempfile.mkdtemp(prefix=PREFIX, dir=folder)
        self._lock = os.open(self._folder, os.O_RDONLY)
        # The kernel drops the lock when this process dies in any way; that is how a later worker knows.
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self, paths: List[str]) -> None:
        for path in paths:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)

    def close(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock)
            self._folder = ""


def sweep(folder: str) -> None:
    """Remove the folders of workers that were killed."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            about = entry.stat(follow_symlinks=False) if entry.name.startswith(PREFIX) else None
            if about is not None and about.st_uid == os.getuid() and time.time() - about.st_mtime > FRESH:
                _remove_abandoned(entry.path)


def _remove_abandoned(folder: str) -> None:
    with contextlib.suppress(OSError):
        lock = os.open(folder, os.O_RDONLY)
        try:
            # Raises where the worker lives: it has the lock.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
