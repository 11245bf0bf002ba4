"""Power cuts without rights: what a process does to files is recorded, and replayed up to any moment.

What was synced is there afterwards. Of what was not, every sector of 512 bytes is there or lost by chance, and every
change of a folder up to a random one is: harsher than any disk. A sync of a file does not make its name durable.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")
HEAD = struct.Struct("<cIqI")
SECTOR = 512


class Operation(NamedTuple):
    """Something that was done to a file; power_cuts.c says which kinds there are."""

    kind: str
    path: str
    offset: int
    data: bytes


def recorder(folder: Path) -> Path | None:
    """The library that is preloaded, made anew in a folder; None where no compiler is installed."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "power_cuts.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", str(SOURCE), "-o", str(library), "-ldl"], check=True)
    return library


def recorded(path: Path) -> list[Operation]:
    """The operations of a log."""
    data, at = path.read_bytes(), 0
    operations = []
    while at + HEAD.size <= len(data):
        kind, length, offset, size = HEAD.unpack_from(data, at)
        at += HEAD.size
        name = data[at : at + length].decode()
        operations.append(Operation(kind.decode(), name, offset, data[at + length : at + length + size]))
        at += length + size
    return operations


class File:
    """What is durable of a file, and what was done to it since it was synced."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self.pending: list[Operation] = []

    def sync(self) -> None:
        for operation in self.pending:
            change(self.durable, operation)
        self.pending.clear()

    def after_a_cut(self, chance: random.Random) -> bytes:
        content = bytearray(self.durable)
        for operation in self.pending:
            for piece in sectors(operation):
                if chance.random() < 0.5:
                    change(content, piece)
                    # A file grows by a whole write, whichever of its sectors are there.
                    content.extend(bytes(max(0, operation.offset + len(operation.data) - len(content))))
        return bytes(content)


def sectors(operation: Operation) -> list[Operation]:
    """What a disk does at once of an operation."""
    if operation.kind == "T":
        return [operation]
    starts = range(0, len(operation.data), SECTOR)
    return [
        operation._replace(offset=operation.offset + start, data=operation.data[start : start + SECTOR])
        for start in starts
    ]


def change(content: bytearray, operation: Operation) -> None:
    content.extend(bytes(max(0, operation.offset - len(content))))
    if operation.kind == "T":
        del content[operation.offset :]
    else:
        content[operation.offset : operation.offset + len(operation.data)] = operation.data


class Disk:
    """Files and folders with what is durable of them. A folder is a name without a file."""

    def __init__(self) -> None:
        self._names: dict[str, File | None] = {}
        """What is there now."""
        self._durable: dict[str, File | None] = {}
        self._pending: list[tuple[str, File | None, bool]] = []
        """Names that were added (True) or removed since their folder was synced."""

    def do(self, operation: Operation) -> None:
        kind, path = operation.kind, operation.path
        if kind in "CM":
            self._add(path, File() if kind == "C" else None)
        elif kind == "R":
            self._add(operation.data.decode(), self._names[path])
            self._remove(path)
        elif kind == "U":
            self._remove(path)
        elif kind == "S":
            self._sync(path)
        elif (file := self._names.get(path)) is not None:
            file.pending.append(operation)

    def _add(self, path: str, file: File | None) -> None:
        self._names[path] = file
        self._pending.append((path, file, True))

    def _remove(self, path: str) -> None:
        file = self._names.pop(path, None)
        self._pending.append((path, file, False))

    def _sync(self, path: str) -> None:
        file = self._names.get(path)
        if file is not None:
            file.sync()
            return
        for entry in [entry for entry in self._pending if os.path.dirname(entry[0]) == path]:
            settle(self._durable, entry)
            self._pending.remove(entry)

    def after_a_cut(self, root: Path, target: Path, chance: random.Random) -> None:
        """Write what is left below `root` to another folder."""
        names = dict(self._durable)
        for entry in self._pending:
            # In order: file systems keep the order of changes to folders.
            if chance.random() < 0.5:
                break
            settle(names, entry)
        target.mkdir()
        for name in sorted(names):
            path, file = target / Path(name).relative_to(root), names[name]
            # A name below a folder that was lost is lost too.
            if path.parent.is_dir():
                path.mkdir() if file is None else path.write_bytes(file.after_a_cut(chance))


def settle(names: dict[str, File | None], entry: tuple[str, File | None, bool]) -> None:
    path, file, is_added = entry
    if is_added:
        names[path] = file
    else:
        names.pop(path, None)


def cut(operations: Sequence[Operation], root: Path, target: Path, chance: random.Random) -> None:
    """Write what is left below `root`, after these operations and a power cut, to another folder."""
    disk = Disk()
    for operation in operations:
        disk.do(operation)
    disk.after_a_cut(root, target, chance)
