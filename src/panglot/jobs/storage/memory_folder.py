"""A folder of jobs in memory, for several fronts without `--jobs`: jobs outlive a front that dies.

It lies in a file system that is in memory. Where the system has none, jobs are in the memory of their front.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from panglot.jobs.job import JobLimits

MEMORY = Path("/dev/shm")  # noqa: S108  files in memory; the folder in it has a random name, and is ours alone
PREFIX = "panglot-jobs-"
YOUNG = 60.0
"""Seconds. A younger folder may be without a lock because its server has just made it."""


class MemoryFolder:
    """Made, locked and removed by the parent of the fronts. The lock lasts as long as the parent or a front lives."""

    def __init__(self, where: Path = MEMORY) -> None:
        self.path: Path | None = None
        self._lock = -1
        _remove_abandoned(where)
        with contextlib.suppress(OSError):
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
            self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def limits_in(folder: Path, limits: JobLimits) -> JobLimits:
    """The limits, with at most half of the memory that is left for files: a container may have little of it."""
    disk = os.statvfs(folder)
    return limits._replace(bytes=min(limits.bytes, disk.f_bavail * disk.f_frsize // 2))


def _remove_abandoned(where: Path) -> None:
    """Remove the folders of servers that were killed: no process holds their locks."""
    for path in where.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            about = path.lstat()
            if about.st_uid != os.geteuid() or path.is_symlink() or time.time() - about.st_ctime < YOUNG:
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
