"""The files of packages on a node: each is stored once, by its digest, and folders are made of links to them.

A front names a folder by the digest of its list of files. Files of the shelf are not sent again: the second worker on a
node, or the next version of a package with the same weights, costs nothing. Files have a fixed time of modification, so
that a file which a script has changed is noticed, and sent again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import socket
import stat
import tempfile
from typing import Dict, Iterable, Iterator, List

from panglot_worker.node.handshake import message, receive_blocking
from panglot_worker.node.listing import ListedFile, name_of, read

UNCHANGED = 946684800
"""The time of modification that all files here have."""
RETAINED = 3600.0
"""Seconds that a folder stays after its last use."""
PIECE = 1 << 20
SILENCE = 60.0
"""Seconds without a byte after which a transfer is cancelled."""
DIGEST = re.compile("[0-9a-f]{64}")


def root() -> str:
    """The folder of the shelf on this node; only its user can read it."""
    base = os.path.join(tempfile.gettempdir(), "panglot-node-%d" % os.getuid())
    for folder in (base, os.path.join(base, "files"), os.path.join(base, "folders"), os.path.join(base, "runs")):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    # Others can write to the folder of temporary files, and may have made this one, or a link, before us.
    about = os.stat(base, follow_symlinks=False)
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise OSError("%s belongs to somebody else, or others can read it" % base)
    return base


class Shelf:
    """The packages that this node has. A folder in use is locked, so that no sweep removes it."""

    def __init__(self) -> None:
        self.base = root()
        self._locks: Dict[str, int] = {}

    def receive(self, sock: socket.socket) -> str:
        """Receive the files of a folder that are missing here, and return the folder's path.

        Raises OSError when they cannot be read or stored, ValueError when they are not the announced files.
        """
        said = receive_blocking(sock)
        entries, name = read(said["files"]), str(said["folder"])
        if name_of(entries) != name:
            raise ValueError("the list of files is not the one that was announced")
        # Held before it is looked at: a sweep of another agent must not remove it in between.
        self._hold(name)
        # Other agents of this node may want the same files now: one of them receives them.
        with self._alone(name):
            folder = os.path.join(self.base, "folders", name, *_title(str(said["title"])))
            missing = [] if self._is_whole(folder, entries) else self._missing(entries)
            sock.sendall(message({"missing": missing}))
            for index in missing:
                self._take(sock, entries[index])
            if not self._is_whole(folder, entries):
                self._put_together(folder, entries)
        return folder

    def _hold(self, name: str) -> None:
        if name not in self._locks:
            lock = os.open(os.path.join(self.base, "folders", name + ".used"), os.O_CREAT | os.O_RDWR, 0o600)
            # Shared among all agents that use the folder; a sweep needs it exclusively.
            fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(lock)
            self._locks[name] = lock

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        with open(os.path.join(self.base, "folders", name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _file(self, entry: ListedFile) -> str:
        if not DIGEST.fullmatch(entry.digest):
            raise ValueError("'%s' is no digest" % entry.digest[:80])
        return os.path.join(self.base, "files", "%s-%o" % (entry.digest, entry.mode & 0o777))

    def _missing(self, entries: List[ListedFile]) -> List[int]:
        """The places in the list of the files that the shelf lacks, each file once."""
        files = {self._file(entry): index for index, entry in enumerate(entries) if not entry.is_folder}
        return [index for path, index in files.items() if not _is_unchanged(path, entries[index].size)]

    def _take(self, sock: socket.socket, entry: ListedFile) -> None:
        """Read one file from the socket, and store it if it has the right digest."""
        checked, left = hashlib.sha256(), entry.size
        handle, path = tempfile.mkstemp(dir=os.path.join(self.base, "runs"))
        try:
            with os.fdopen(handle, "wb") as file:
                while left:
                    piece = sock.recv(min(left, PIECE))
                    if not piece:
                        raise ConnectionResetError("the front hung up")
                    checked.update(piece)
                    file.write(piece)
                    left -= len(piece)
            if checked.hexdigest() != entry.digest:
                raise ValueError("%s was changed on its way here, or while it was sent" % entry.path)
            os.chmod(path, entry.mode & 0o777)
            # Complete before it gets its name: `replace` is atomic, so other agents see the whole file or none.
            os.utime(path, (UNCHANGED, UNCHANGED))
            os.replace(path, self._file(entry))
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _is_whole(self, folder: str, entries: List[ListedFile]) -> bool:
        """Whether a folder has all its files, as they were sent."""
        return os.path.isdir(folder) and all(
            entry.is_folder or _is_unchanged(os.path.join(folder, entry.path), entry.size) for entry in entries
        )

    def _put_together(self, folder: str, entries: List[ListedFile]) -> None:
        """Make the folder of links to files. A folder in which a script has changed a file is put aside first."""
        # Complete before it gets its name: a worker never sees half of it.
        making = tempfile.mkdtemp(dir=os.path.join(self.base, "runs"))
        for entry in entries:
            target = os.path.normpath(os.path.join(making, entry.path))
            if not target.startswith(making + os.sep):
                raise ValueError("'%s' leads out of its folder" % entry.path)
            os.makedirs(target if entry.is_folder else os.path.dirname(target), exist_ok=True)
            if not entry.is_folder:
                os.link(self._file(entry), target)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if os.path.isdir(folder):
            os.rename(folder, making + "-changed")
        os.rename(making, folder)

    def make_run(self, name: str, links: Dict[str, str], stores_inputs: bool) -> List[str]:
        """Make the private folders of a worker: one with links in it to run in, and one for files of requests.

        Returns those that it has. Raises OSError.
        """
        run_folder = os.path.join(self.base, "runs", "%d-%s" % (os.getpid(), name))
        folders = [run_folder] if links else []
        folders += [run_folder + "-inputs"] if stores_inputs else []
        for folder in folders:
            os.mkdir(folder)
        for inside, target in links.items():
            link = os.path.join(run_folder, inside)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(target, link)
        return folders

    def remove_run(self, folders: Iterable[str]) -> None:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Release all folders."""
        while self._locks:
            os.close(self._locks.popitem()[1])

    def sweep(self, now: float) -> None:
        """Remove folders that nobody has used for a while, then files that no folder links to."""
        folders = os.path.join(self.base, "folders")
        for name in os.listdir(folders):
            if name.endswith(".used") and name[: -len(".used")] not in self._locks:
                with contextlib.suppress(OSError):
                    _remove_unused(os.path.join(folders, name), now)
        for inner in ("files", "runs"):
            for name in os.listdir(os.path.join(self.base, inner)):
                with contextlib.suppress(OSError):
                    _remove_left(os.path.join(self.base, inner, name), now)


def _title(text: str) -> List[str]:
    """The name of a folder, perhaps with folders above it. Raises ValueError for a name that leads elsewhere."""
    names = text.split("/")
    if any(name in ("", ".", "..") or "\0" in name for name in names):
        raise ValueError("'%s' is no name of a folder" % text[:80])
    return names


def _is_unchanged(path: str, size: int) -> bool:
    try:
        about = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return about.st_size == size and about.st_mtime == UNCHANGED


def _remove_unused(mark: str, now: float) -> None:
    with open(mark, "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Looked at under the lock: somebody may have used the folder until a moment ago.
        if now - os.stat(mark).st_mtime > RETAINED:
            shutil.rmtree(mark[: -len(".used")], ignore_errors=True)
            os.unlink(mark)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(mark[: -len(".used")] + ".lock")


def _remove_left(path: str, now: float) -> None:
    """Remove a file that no folder has a link to, or what a killed agent was making or running in."""
    about = os.stat(path, follow_symlinks=False)
    # Run folders begin with the process id of their agent; an agent that lives may use them for days.
    pid = os.path.basename(path).partition("-")[0]
    if now - about.st_ctime <= RETAINED or (pid.isdigit() and os.path.exists("/proc/" + pid)):
        return
    if stat.S_ISDIR(about.st_mode):
        shutil.rmtree(path, ignore_errors=True)
    elif about.st_nlink == 1:
        os.unlink(path)
