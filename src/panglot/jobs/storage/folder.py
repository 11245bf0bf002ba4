"""The folder of `--jobs`: its lock, its current database, and the files of large bodies and answers.

lock        held for as long as a server uses the folder
current     the name of the database; replaced by a rename
jobs-1.db   and its log, jobs-1.db-wal
bodies/     ID.N: a JSON line with the job's fields, then the body
answers/    ID.N: the bytes of an answer
ballast     space that is given up when the disk is full, so that answers of accepted jobs can still be stored
lost/       files whose rows a damaged database lost
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from pathlib import Path

from panglot.errors import StartError

BALLAST = 4 << 20
"""Bytes of the ballast: at most so many, and at most an eighth of the disk."""
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "lustre", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "afs"}
)
"""Types of file systems on other machines. SQLite's log needs memory that all users of a file share."""
BODIES, ANSWERS = "bodies", "answers"
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class JobFolder:
    """The files of one folder of jobs. It is locked from `claim` until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = os.getpid()
        """The process that the lock names: whoever needs the folder stops this one."""
        self.low = False
        """Whether the disk is full: the ballast is given up, and no job is accepted."""
        self._lock = -1
        self._folders: dict[str, int] = {}

    def claim(self) -> None:
        """Make the folder where it is missing, and lock it. Raises StartError."""
        try:
            missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
            if missing:
                self.path.mkdir(mode=0o700, parents=True)
            for path in missing:
                # Each of them: if the name of a folder is lost, everything below it is lost.
                sync_folder(path.parent)
            for name in (BODIES, ANSWERS):
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
            sync_folder(self.path)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            fix = "choose a folder that this user may write to"
            raise StartError(f"--jobs {self.path}: {error.strerror}", fix=fix) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._lock, 64, 0).decode("ascii", "replace").strip() or "another server"
            os.close(self._lock)
            self._lock = -1
            fix = "stop that server, or give this server a folder of its own"
            raise StartError(f"--jobs {self.path} is in use by {owner}", fix=fix) from None
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"pid {self.server} on {os.uname().nodename}\n".encode(), 0)
        except OSError as error:
            # A full disk must not keep accepted jobs from running.
            if error.errno not in NO_SPACE:
                self.close()
                raise StartError(f"--jobs {self.path}: {error.strerror}") from None
        self._folders = {name: os.open(self.path / name, os.O_RDONLY | os.O_CLOEXEC) for name in (BODIES, ANSWERS)}
        self.restore_ballast()

    def close(self) -> None:
        """Release the folder, so that another server can claim it."""
        for descriptor in (*self._folders.values(), self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._folders, self._lock = {}, -1

    # The current database

    def current(self) -> str:
        """The name of the database; empty: there is none yet."""
        try:
            return (self.path / "current").read_text().strip()
        except FileNotFoundError:
            return ""

    def switch(self, name: str) -> None:
        """Make a database the current one, by one rename: after a crash it is either the old or the new one."""
        path = self.path / "current.new"
        with path.open("w") as file:
            file.write(name + "\n")
            file.flush()
            os.fsync(file.fileno())
        path.rename(self.path / "current")
        sync_folder(self.path)

    # Large bodies and answers

    def file(self, kind: str, name: str, number: int) -> Path:
        return self.path / kind / f"{name}.{number:x}"

    def write(self, kind: str, name: str, *pieces: bytes) -> tuple[int, Path]:
        """Write a new file, and sync it. Returns its number and path. Raises OSError.

        A second attempt gets another number: after a failed sync the system may drop pages, and report no error again.
        """
        number = secrets.randbits(47) | 1
        path = self.file(kind, name, number)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            remove(path)
            raise
        finally:
            os.close(descriptor)
        return number, path

    def sync(self, kind: str) -> None:
        """Make the names of new files durable. Raises OSError."""
        os.fsync(self._folders[kind])

    def read(self, kind: str, name: str, number: int) -> bytes | None:
        """The content of a file; None where it is missing. Raises OSError."""
        try:
            return self.file(kind, name, number).read_bytes()
        except FileNotFoundError:
            return None

    # The ballast

    def restore_ballast(self) -> None:
        """Reserve the space again, if the disk has twice as much free. If it fails, `low` is set."""
        path = self.path / "ballast"
        try:
            disk = os.statvfs(self.path)
            size = min(BALLAST, disk.f_blocks * disk.f_frsize // 8)
            if not path.exists():
                if disk.f_bavail * disk.f_frsize < 2 * size:
                    raise OSError(errno.ENOSPC, "no space")
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
                try:
                    # Not `ftruncate`, which would reserve nothing: the file would be sparse.
                    os.posix_fallocate(descriptor, 0, size)
                finally:
                    os.close(descriptor)
            self.low = False
        except OSError:
            self.drop_ballast()

    def drop_ballast(self) -> None:
        """Give up the reserved space, so that accepted jobs can still be finished."""
        remove(self.path / "ballast")
        self.low = True


def remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_remote(folder: Path) -> bool:
    """Whether a folder lies on another machine."""
    real, best = os.path.realpath(folder), ("", "")
    with contextlib.suppress(OSError), open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            left, _, right = line.partition(" - ")
            point = left.split()[4].encode().decode("unicode_escape")
            if (real + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
                best = point, right.split()[0]
    return best[1] in NETWORK
