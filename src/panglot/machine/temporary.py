"""Folders of one server below the system's temporary one, and the removal of those that killed servers left there.

A server holds a lock on its folder as long as it lives, so a folder without one is nobody's. Unlike the number of a
process, a lock means the same to servers in different containers that share a disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

UNLOCKED = ".panglot-new-"
"""The prefix of a folder that has no lock yet; no sweep looks for it."""


class Temporary:
    """A folder that only its user can read. It is made when first needed, by the first thread that needs it."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._path: Path | None = None
        self._lock = -1
        self._making = threading.Lock()

    def path(self) -> Path:
        """The folder; made again when someone has removed it. Raises OSError."""
        with self._making:
            if self._path is None or not self._path.is_dir():
                self._close_lock()
                self._path = self._made()
            return self._path

    def _made(self) -> Path:
        above = Path(tempfile.gettempdir())
        with contextlib.suppress(FileExistsError):
            above.mkdir(parents=True)
        sweep(self.prefix)
        unlocked = Path(tempfile.mkdtemp(prefix=UNLOCKED, dir=above))
        self._lock = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return unlocked.rename(above / unlocked.name.replace(UNLOCKED, self.prefix))

    def _close_lock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def close(self) -> None:
        """Remove it with all that is in it, if it was ever made."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None
        self._close_lock()


def sweep(prefix: str) -> None:
    """Remove the folders with this prefix that belong to servers which have ended."""
    for folder in Path(tempfile.gettempdir()).glob(prefix + "*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            with locked_if_abandoned(folder) as abandoned:
                if abandoned:
                    shutil.rmtree(folder, ignore_errors=True)


def is_abandoned(folder: Path) -> bool:
    """Whether the server that made a folder has ended. Raises OSError when the folder cannot be opened."""
    try:
        with locked_if_abandoned(folder) as abandoned:
            return abandoned
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def locked_if_abandoned(folder: Path) -> Iterator[bool]:
    """Whether the server that made a folder has ended. If so, its lock is held meanwhile.

    Raises OSError when the folder cannot be opened, as when it has gone.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
