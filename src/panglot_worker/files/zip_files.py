"""Unpacking a zip file that a stranger has made, by the rules by which the front unpacks packages, without links."""

from __future__ import annotations

import io
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from typing import Any, List, Set

try:
    from lzma import LZMAError
except ImportError:
    # A CPython that was built without it refuses such an entry.
    LZMAError = zipfile.BadZipFile  # type: ignore[misc, assignment]

PIECE = 1 << 20
MOST_FILES = 100_000
"""Files and folders."""
LONGEST_NAME, LONGEST_PATH, MOST_PARTS = 255, 2048, 64
"""Bytes of a part of a path and of a whole path, and the deepest nesting of folders."""
LARGEST_DIRECTORY = 32 << 20
"""Bytes of the list of files at the end of a zip file, which the standard library reads into memory at once."""
RATIO, ALWAYS = 100, 1 << 30
"""Unpacked bytes for each byte of the archive, and the bytes that are allowed whatever the ratio."""
DAMAGED = (
    zipfile.BadZipFile, zlib.error, LZMAError, struct.error, EOFError, RuntimeError, ValueError, LookupError,
    ArithmeticError,
)  # fmt: skip


class BadArchive(Exception):
    """An archive that is damaged, or that has what no archive may have. The message is a sentence."""


def unpack(archive: str, folder: str, most_bytes: int) -> None:
    """Unpack a zip file into a folder, which is made.

    Raises BadArchive and OSError, and leaves a part of the files.
    """
    most = min(most_bytes, max(ALWAYS, RATIO * os.path.getsize(archive)))
    try:
        with _Bounded(archive) as file, zipfile.ZipFile(file) as opened:
            os.makedirs(folder)
            _Writing(opened, folder, most).write()
    except DAMAGED as error:
        raise BadArchive("the archive is damaged: %s" % error) from None


class _Bounded(io.FileIO):
    """A zip file, read in pieces of a limited size. Only its list of files is read at once, and may be too large."""

    def read(self, size: Any = -1, /) -> bytes:
        wanted = LARGEST_DIRECTORY + 1 if size is None or size < 0 else size
        if wanted > LARGEST_DIRECTORY and os.fstat(self.fileno()).st_size - self.tell() > LARGEST_DIRECTORY:
            raise BadArchive("the archive lists too many files")
        return super().read(wanted) or b""


class _Writing:
    """Writes the files of an archive into a folder."""

    def __init__(self, opened: zipfile.ZipFile, folder: str, most: int) -> None:
        self._opened = opened
        self._folder = folder
        self._most = self._left = most
        self._paths: Set[str] = set()

    def write(self) -> None:
        for entry in self._opened.infolist():
            # Not `filename`, which ends at the first NUL: a name with a NUL must be refused.
            parts, mode = _parts(entry.orig_filename), entry.external_attr >> 16
            # 0: the archive was made on a system without modes.
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise BadArchive("%r is neither a file nor a folder" % entry.filename)
            if entry.flag_bits & 1:
                raise BadArchive("%r is encrypted" % entry.filename)
            self._make_folders(parts if entry.is_dir() else parts[:-1])
            if not entry.is_dir():
                self._copy(entry, os.path.join(self._folder, *self._noted(parts)))

    def _make_folders(self, parts: List[str]) -> None:
        for end in range(1, len(parts) + 1):
            path = os.path.join(self._folder, *parts[:end])
            if not os.path.isdir(path):
                os.mkdir(os.path.join(self._folder, *self._noted(parts[:end])))

    def _noted(self, parts: List[str]) -> List[str]:
        name = "/".join(parts)
        if not parts or name in self._paths:
            raise BadArchive("%r is in the archive twice" % name)
        self._paths.add(name)
        if len(self._paths) > MOST_FILES:
            raise BadArchive("the archive has more than %d files" % MOST_FILES)
        return parts

    def _copy(self, entry: zipfile.ZipInfo, path: str) -> None:
        with self._opened.open(entry) as content, open(path, "xb") as target:
            while True:
                piece = content.read(PIECE)
                if not piece:
                    return
                self._left -= len(piece)
                # Counted as they are read: the sizes in the archive are its maker's.
                if self._left < 0:
                    raise BadArchive("the archive becomes more than %d bytes" % self._most)
                target.write(piece)


def _parts(name: str) -> List[str]:
    """The parts of a relative path of an archive. Raises BadArchive for a name that leads elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if "\\" in name or any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise BadArchive("%r is no name of a file" % name)
    if name.startswith("/") or ".." in parts:
        raise BadArchive("%r leads out of the archive" % name)
    longest = max((len(part.encode()) for part in parts), default=0)
    if len(name.encode()) > LONGEST_PATH or longest > LONGEST_NAME or len(parts) > MOST_PARTS:
        raise BadArchive("%r is too long for a name of a file" % name[:LONGEST_NAME])
    return parts
