"""The folder of a package, as it travels to nodes: listed, named by the list's digest, sent as far as it is missing."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import panglot_worker.node.handshake as handshake
from panglot.engine.ray.placement import Placement, PlacementLost
from panglot_worker.node.listing import ListedFile, name_of

LEFT_OUT = ("__pycache__", ".git")
MOST = 50_000
"""The most files of a package."""
SILENCE = 60.0


@dataclass(frozen=True)
class Listed:
    """A folder and what is in it."""

    folder: Path
    entries: list[ListedFile]
    name: str

    @property
    def bytes(self) -> int:
        return sum(entry.size for entry in self.entries)


class Shipment:
    """Lists folders. It remembers the digests of files that have not changed."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, int, int, int], str] = {}

    async def send(self, folder: Path, placement: Placement, title: str = "") -> str:
        """Send a folder to a placement. Returns its path there, which ends with its title.

        Raises OSError or ValueError.
        """
        loop = asyncio.get_running_loop()
        listed = await loop.run_in_executor(None, self.list, folder)
        sock = await placement.connect({"role": "files"})
        return await loop.run_in_executor(None, transfer, sock, listed, title or folder.name, placement.cluster.tls)

    def list(self, folder: Path) -> Listed:
        """What is in a folder. Links are followed. Raises OSError, ValueError for too many files."""
        entries: list[ListedFile] = []
        above: dict[str, frozenset[str]] = {}
        """The real paths of the folders that are walked, each with those above it."""
        for here, folders, files in os.walk(folder, followlinks=True):
            real, parents = os.path.realpath(here), above.get(os.path.dirname(here), frozenset())
            folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
            # A link to a folder above would lead round and round. Two links to one folder are two folders there.
            if real in parents:
                folders.clear()
                continue
            above[here] = parents | {real}
            inside = os.path.relpath(here, folder)
            if not folders and not files and inside != ".":
                entries.append(ListedFile(inside + "/", 0o755, 0, ""))
            paths = [os.path.join(here, name) for name in sorted(files)]
            entries += [self._entry(path, os.path.relpath(path, folder)) for path in paths if os.path.isfile(path)]
            if len(entries) > MOST or len(above) > MOST:
                raise ValueError(f"{folder} has more than {MOST} files: --ray-files shared uses them where they are")
        return Listed(folder, entries, name_of(entries))

    def _entry(self, path: str, inside: str) -> ListedFile:
        about = os.stat(path)
        key = (path, about.st_size, about.st_mtime_ns, about.st_ino)
        digest = self._digests.get(key)
        if digest is None:
            with open(path, "rb") as file:
                digest = self._digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return ListedFile(inside, 0o755 if about.st_mode & 0o100 else 0o644, about.st_size, digest)


def transfer(sock: socket.socket, listed: Listed, title: str, tls: ssl.SSLContext | None) -> str:
    """Send the files that the node lacks. Returns the folder's path there. Raises OSError or ValueError."""
    sock.settimeout(SILENCE)
    with sock if tls is None else tls.wrap_socket(sock) as sock:
        files = [list(entry) for entry in listed.entries]
        sock.sendall(handshake.message({"folder": listed.name, "title": title, "files": files}))
        answer = handshake.receive_blocking(sock)
        for index in answer.get("missing", ()):
            entry = listed.entries[index]
            with open(listed.folder / entry.path, "rb") as file:
                # `sendfile` refuses a count of 0, so an empty file is sent without a count.
                if sock.sendfile(file, 0, entry.size or None) != entry.size:
                    raise ValueError(f"{entry.path} changed while it was sent")
        if "problem" not in answer:
            answer = handshake.receive_blocking(sock)
    if "problem" in answer:
        raise PlacementLost(str(answer["problem"]))
    return str(answer["path"])
