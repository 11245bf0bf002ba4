"""Unpacking an archive of a package: zip (also `.mar`), tar, tar.gz.

An archive may be damaged, or made to do harm. Whatever is wrong with it, nothing is written outside of the folder it
is unpacked into, and the error is one sentence:

- names are relative, without `..`, backslashes and control characters, and no name occurs twice;
- the number of files, their bytes, and the ratio of these bytes to the size of the archive are limited;
- a symbolic link leads to something inside of the folder, a hard link to a file that came before it;
- devices, pipes, sparse and encrypted files are refused.

Files are written before the first link is made, so no file is ever written through a link.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from panglot.errors import StartError
from panglot.terminal.text import brief

try:
    from lzma import LZMAError
except ImportError:
    # A CPython that was built without it refuses such an entry.
    LZMAError = zipfile.BadZipFile  # type: ignore[misc, assignment]

UNPACK_IT = "unpack it yourself, and name the folder"

PIECE = 1 << 20
LONGEST_NAME = 255
"""Bytes of a part of a path, as file systems have it."""
LONGEST_PATH = 2048
LONGEST_TARGET = 1024
MOST_PARTS = 64
"""The deepest nesting of folders."""
LONGEST_HEADER = 1 << 16
"""Bytes of a header of tar that the standard library reads into memory at once: long names, further fields."""
LARGEST_DIRECTORY = 32 << 20
"""Bytes of the list of files at the end of a zip file, which the standard library reads into memory at once."""
LATEST = 1 << 33
"""The latest time of a file, in seconds."""

_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, struct.error, EOFError, RuntimeError,
    LZMAError, ValueError, LookupError, ArithmeticError,
)  # fmt: skip


@dataclass(frozen=True)
class ArchiveLimits:
    """How much an archive may have."""

    files: int = 100_000
    """Files, folders and links."""
    bytes: int = 256 << 30
    ratio: int = 100
    """Unpacked bytes for each byte of the archive. Weights shrink little, and scripts shrink to a tenth."""
    always: int = 1 << 30
    """Unpacked bytes that are allowed whatever the ratio."""

    def most_bytes(self, size: int) -> int:
        """The bytes that an archive of some size may become."""
        return min(self.bytes, max(self.always, self.ratio * size))


def unpack(archive: IO[bytes], folder: Path, limits: ArchiveLimits | None = None) -> None:
    """Unpack an open archive into an empty folder. Raises StartError, and leaves a part of the files."""
    chosen = limits or ArchiveLimits()
    budget = _Budget(chosen.most_bytes(os.fstat(archive.fileno()).st_size), chosen.files)
    try:
        writing = _Writing(folder, budget)
        for member in _members(archive, budget):
            writing.add(member)
        writing.make_links()
    except _RefusedError as error:
        raise StartError(brief(str(error)), file=str(archive.name), fix=error.fix) from None
    except _DAMAGED as error:
        raise StartError(brief(f"this archive is damaged: {error}"), file=str(archive.name)) from None
    except OSError as error:
        raise StartError(f"it cannot be unpacked: {error.strerror or error}", file=str(archive.name)) from None
    if not writing.names:
        raise StartError("this archive is empty", file=str(archive.name))


class _RefusedError(Exception):
    """A content that no archive may have. The message is a sentence."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.fix = fix


class _Budget:
    """The bytes and files that an archive may still have."""

    def __init__(self, most_bytes: int, most_files: int) -> None:
        self._most_bytes = self._bytes = most_bytes
        self._most_files = self._files = most_files

    def spend_bytes(self, count: int) -> None:
        self._bytes -= count
        if self._bytes < 0:
            raise _RefusedError(f"this archive becomes more than {self._most_bytes >> 20} MiB", UNPACK_IT)

    def spend_file(self) -> None:
        self._files -= 1
        if self._files < 0:
            raise _RefusedError(f"this archive has more than {self._most_files} files", UNPACK_IT)


# Reading


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Member(NamedTuple):
    """An entry of an archive. It is a folder where there is neither content nor target."""

    name: str
    content: _Readable | None = None
    link: str | None = None
    """The target of a symbolic link."""
    hard_link: str | None = None
    """The name of an earlier file of the archive: this entry is another name of it."""
    executable: bool = False
    modified: float = 0.0


class _Counted:
    """A stream that spends its bytes from a budget as they are read."""

    def __init__(self, stream: _Readable, budget: _Budget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int, /) -> bytes:
        piece = self._stream.read(size)
        self._budget.spend_bytes(len(piece))
        return piece


def _members(archive: IO[bytes], budget: _Budget) -> Iterator[_Member]:
    """The entries of an archive. Its first bytes say which kind it is."""
    archive.seek(0)
    start = archive.read(512)
    archive.seek(0)
    if start.startswith((b"PK\3\4", b"PK\5\6")):
        return _zip_members(archive, budget)
    if start.startswith(b"\x1f\x8b"):
        return _tar_members(_Counted(gzip.GzipFile(fileobj=archive), budget))
    if start[257:262] == b"ustar":
        return _tar_members(_Counted(archive, budget))
    raise _RefusedError("this is neither a zip file nor a tar or tar.gz file", UNPACK_IT)


class _Bounded(io.FileIO):
    """A zip file, read in pieces of a limited size. Only its list of files is read at once, and may be too large."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = LARGEST_DIRECTORY + 1 if size is None or size < 0 else size
        if wanted > LARGEST_DIRECTORY and os.fstat(self.fileno()).st_size - self.tell() > LARGEST_DIRECTORY:
            raise _RefusedError("this archive lists too many files", UNPACK_IT)
        return super().read(wanted) or b""


def _zip_members(archive: IO[bytes], budget: _Budget) -> Iterator[_Member]:
    with _Bounded(archive.fileno(), closefd=False) as file, zipfile.ZipFile(file) as opened:
        for entry in opened.infolist():
            # Not `filename`, which ends at the first NUL: a name with a NUL must be refused.
            name, mode = entry.orig_filename, entry.external_attr >> 16
            if entry.flag_bits & 1:
                raise _RefusedError(f"'{name}' is encrypted")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _RefusedError(f"'{name}' is compressed in a way that is not read", UNPACK_IT)
            # 0: the archive was made on a system without modes.
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                raise _RefusedError(f"'{name}' is neither a file nor a folder nor a link")
            if entry.is_dir():
                yield _Member(name)
                continue
            with opened.open(entry) as content:
                counted = _Counted(content, budget)
                if stat.S_ISLNK(mode):
                    yield _Member(name, link=os.fsdecode(counted.read(LONGEST_TARGET + 1)))
                else:
                    yield _Member(name, counted, executable=bool(mode & 0o111))


class _Header(tarfile.TarInfo):
    """A header of a tar file. Raises _RefusedError for a large one: the standard library reads headers into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        header = super().frombuf(buf, encoding, errors)
        if header.type == tarfile.GNUTYPE_SPARSE:
            cls._proc_sparse_of_pax()
        further = not header.isreg() and not header.islnk() and not header.issym() and not header.isdir()
        if header.size < 0 or (further and header.size > LONGEST_HEADER):
            raise _RefusedError("this archive has a header of an impossible size")
        return header

    @staticmethod
    def _proc_sparse_of_pax(*_: object) -> None:
        raise _RefusedError("this archive has sparse files, which are not read", UNPACK_IT)

    # The methods that the standard library calls for the ways to write a sparse file.
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _proc_sparse_of_pax


def _tar_members(stream: _Counted) -> Iterator[_Member]:
    # "r|": as a stream, in which every byte is read, and counted, once.
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as opened:  # type: ignore[call-overload]
        while (entry := opened.next()) is not None:
            # The standard library remembers all headers, which takes much memory for many files.
            opened.members.clear()
            name, modified = entry.name, min(max(0.0, float(entry.mtime)), LATEST)
            if entry.isdir():
                yield _Member(name)
            elif entry.issym():
                yield _Member(name, link=entry.linkname)
            elif entry.islnk():
                yield _Member(name, hard_link=entry.linkname)
            elif entry.isreg():
                yield _Member(name, opened.extractfile(entry), executable=bool(entry.mode & 0o111), modified=modified)
            else:
                raise _RefusedError(f"'{name}' is neither a file nor a folder nor a link")
    # Read to the end: the checksum of gzip is there, and also bytes that the limits must count.
    while stream.read(PIECE):
        pass


# Writing


@dataclass
class _Writing:
    """Writes the files of an archive into a folder. Links are made last."""

    folder: Path
    budget: _Budget
    names: dict[str, bool] = field(default_factory=dict)
    """Every path so far: whether it is a folder."""
    links: dict[str, str] = field(default_factory=dict)

    def add(self, member: _Member) -> None:
        """Write an entry, or note a link. Raises _RefusedError."""
        parts = _parts(member.name)
        if member.content is None and member.link is None and member.hard_link is None:
            self._make_folders(parts)
            return
        self._make_folders(parts[:-1])
        name = "/".join(parts)
        if not parts or name in self.names:
            raise _RefusedError(f"'{member.name}' is in this archive twice")
        self._note(name, is_folder=False)
        if member.link is not None:
            self.links[name] = member.link
        elif member.hard_link is not None:
            self._hard_link(name, member.hard_link)
        elif member.content is not None:
            self._write(name, member.content, member)

    def _note(self, name: str, is_folder: bool) -> None:
        self.budget.spend_file()
        self.names[name] = is_folder

    def _make_folders(self, parts: list[str]) -> None:
        for end in range(1, len(parts) + 1):
            name = "/".join(parts[:end])
            if name not in self.names:
                self._note(name, is_folder=True)
                (self.folder / name).mkdir(mode=0o755)
            elif not self.names[name]:
                raise _RefusedError(f"'{name}' is in this archive as a file and as a folder")

    def _write(self, name: str, content: _Readable, member: _Member) -> None:
        path = self.folder / name
        mode = 0o755 if member.executable else 0o644
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as file:
            while piece := content.read(PIECE):
                file.write(piece)
        if member.modified:
            # Python uses a compiled module only if the time of its source is the one that it was compiled with.
            os.utime(path, (member.modified, member.modified))

    def _hard_link(self, name: str, target: str) -> None:
        original = "/".join(_parts(target))
        if self.names.get(original) is not False or original in self.links or original == name:
            raise _RefusedError(f"the hard link '{name}' leads to no file of this archive")
        os.link(self.folder / original, self.folder / name)

    def make_links(self) -> None:
        """Make the symbolic links. Raises _RefusedError for one that leads outside."""
        for name, target in self.links.items():
            if not self._stays_inside(name, target):
                raise _RefusedError(f"the link '{name}' leads outside of this archive: '{target}'")
            (self.folder / name).symlink_to(target)

    def _stays_inside(self, name: str, target: str) -> bool:
        """Whether a link leads into the folder. It may lead there through other links that do."""
        if not target or target.startswith("/") or not _is_plain(target) or len(target.encode()) > LONGEST_TARGET:
            return False
        at, is_behind_link = name.split("/")[:-1], False
        for part in target.split("/"):
            if part == "..":
                # What `..` means behind a link depends on where that link leads.
                if is_behind_link or not at:
                    return False
                at.pop()
            elif part not in ("", "."):
                at.append(part)
                is_behind_link = is_behind_link or "/".join(at) in self.links
        return True


def _is_plain(text: str) -> bool:
    return all(unicodedata.category(character) not in ("Cc", "Cs") for character in text)


def _parts(name: str) -> list[str]:
    """The parts of a relative path of an archive. Raises _RefusedError for a name that leads elsewhere."""
    if not _is_plain(name) or "\\" in name:
        raise _RefusedError(f"'{name}' is no name of a file", UNPACK_IT)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise _RefusedError(f"'{name}' leads outside of this archive")
    longest = max((len(part.encode()) for part in parts), default=0)
    if len(name.encode()) > LONGEST_PATH or longest > LONGEST_NAME or len(parts) > MOST_PARTS:
        raise _RefusedError(f"'{name}' is too long for a name of a file", UNPACK_IT)
    return parts


def remove(folder: Path) -> None:
    """Remove unpacked files, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)
