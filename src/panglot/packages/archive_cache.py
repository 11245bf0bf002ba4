"""Unpacked archives, stored by the digest of the archive: `$XDG_CACHE_HOME/panglot/archives`.

    SHA256/               the files of the archive
    SHA256.lock           locked by every process that uses them; its time is that of the last use
    SHA256.unpacking      locked by the process that unpacks, while others wait for it
    digests/KEY           the digest of an archive that was looked at before, by its path, inode, size and times

A folder appears by a rename when all its files are there. A folder is removed when another archive is unpacked, if no
process uses it, and none has used it for 30 days.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from panglot.errors import StartError
from panglot.packages import archives
from panglot.packages.archives import ArchiveLimits
from panglot_worker.life.installing import cache_folder

UNUSED = 30 * 24 * 3600
"""Seconds after which a folder that no process uses may be removed."""
SETTLED = 2
"""Seconds after which a further change gives a file another time of change, on every file system."""
LOCK, UNPACKING, DIGESTS = ".lock", ".unpacking", "digests"


@functools.cache
def of_this_process(folder: Path) -> ArchiveCache:
    """The cache in a folder: one for the whole process, because its locks must last as long as the process."""
    return ArchiveCache(folder)


def unpacked(archive: Path, limits: ArchiveLimits | None = None) -> Path:
    """The folder with the files of an archive, which stays until this process ends. Raises StartError."""
    return of_this_process(Path(cache_folder("archives"))).unpacked(archive, limits)


class ArchiveCache:
    """The archives that are unpacked below one folder, and the locks of those that this process uses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, int] = {}
        """The open lock of each folder that this process uses, by digest. The system frees them when it ends."""
        self._one_at_a_time = threading.Lock()
        """Guards `_locks`: several models may be loaded on several threads."""

    def unpacked(self, archive: Path, limits: ArchiveLimits | None = None) -> Path:
        """The folder with the files of an archive, unpacked unless it is there already. Raises StartError."""
        try:
            file = open(archive, "rb")  # noqa: SIM115  closed below; its error has another sentence
        except OSError as error:
            raise StartError(f"it cannot be read: {error.strerror or error}", file=str(archive)) from None
        try:
            with self._one_at_a_time, file:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                digest = self._digest(file)
                folder = self._folder / digest
                # Before the folder is looked for: a folder whose lock is held is not removed by others.
                self._use(digest)
                if not folder.is_dir():
                    self._remove_unused()
                    self._unpack(file, folder, limits)
                return folder
        except OSError as error:
            problem = f"archives cannot be unpacked in {self._folder}: {error.strerror or error}"
            fix = "set XDG_CACHE_HOME to a folder that this user may write to"
            raise StartError(problem, file=str(archive), fix=fix) from None

    def close(self) -> None:
        """Allow other processes to remove the folders that this process has used."""
        while self._locks:
            os.close(self._locks.popitem()[1])

    # The digest

    def _digest(self, file: BufferedReader) -> str:
        """The digest of an archive. It is stored for the next start, because reading gigabytes takes seconds."""
        about = os.fstat(file.fileno())
        words = (os.path.abspath(file.name), about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        key = hashlib.sha256(repr((*words, about.st_ctime_ns)).encode(errors="surrogateescape")).hexdigest()
        stored = self._folder / DIGESTS / key
        with contextlib.suppress(OSError, ValueError):
            digest = stored.read_text("ascii")
            if len(digest) == len(key) and digest.isalnum():
                os.utime(stored)
                return digest
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        # Not stored for a file that has changed while it was read, or just before: it may change once more without a
        # new time, and would then keep its old digest.
        if about.st_mtime_ns == os.fstat(file.fileno()).st_mtime_ns and about.st_ctime < time.time() - SETTLED:
            stored.parent.mkdir(exist_ok=True)
            _write_whole(stored, digest)
        return digest

    # Locks

    def _use(self, digest: str) -> None:
        """Hold the lock that shows other processes that a folder is in use."""
        path = self._folder / (digest + LOCK)
        while digest not in self._locks:
            lock = _open_lock(path)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if os.fstat(lock).st_nlink:
                self._locks[digest] = lock
            else:
                # Another process has removed the file after it was opened here, and before it was locked.
                os.close(lock)
        os.utime(self._locks[digest])

    def _unpack(self, file: BufferedReader, folder: Path, limits: ArchiveLimits | None) -> None:
        with _locked(self._folder / (folder.name + UNPACKING)):
            # Another process may have unpacked it while this one waited for the lock.
            if folder.is_dir():
                return
            # Left by processes that were killed while they unpacked: no other one has the lock.
            for left in self._folder.glob(f".{folder.name}-*"):
                archives.remove(left)
            before = os.fstat(file.fileno())
            new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=self._folder))
            try:
                archives.unpack(file, new, limits)
                after = os.fstat(file.fileno())
                if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                    raise StartError("this archive changed while it was unpacked", file=str(file.name))
                new.rename(folder)
            except BaseException:
                archives.remove(new)
                raise

    def _remove_unused(self) -> None:
        """Remove folders and stored digests that have not been used for long."""
        old = time.time() - UNUSED
        for path in [*self._folder.glob(f"*{LOCK}"), *self._folder.glob(f"{DIGESTS}/*")]:
            with contextlib.suppress(OSError):
                if path.stat().st_mtime > old:
                    continue
                if path.suffix != LOCK:
                    path.unlink()
                    continue
                lock = _open_lock(path)
                try:
                    # Raises where a process uses the folder; `suppress` then goes on with the next path.
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._remove(path.name.removesuffix(LOCK))
                finally:
                    os.close(lock)

    def _remove(self, digest: str) -> None:
        """Remove a folder. The caller alone holds its lock."""
        with contextlib.suppress(FileNotFoundError):
            # Renamed first: another process may look for the folder at any time, and must not find a part of it.
            (self._folder / digest).rename(self._folder / f".{digest}-removed")
        for folder in self._folder.glob(f".{digest}-*"):
            archives.remove(folder)
        # The lock goes last. A process that waits for it finds that its file has no name any more: see `_use`.
        for ending in (UNPACKING, LOCK):
            (self._folder / (digest + ending)).unlink(missing_ok=True)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = _open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write_whole(path: Path, text: str) -> None:
    """Write a file that other processes see either whole or not at all."""
    descriptor, new = tempfile.mkstemp(dir=path.parent)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(new, path)
