"""Finds files from clients that Python would unpickle, before a script opens one: a pickle runs its sender's code."""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
from typing import Iterator, Tuple

from panglot_worker.dialects.paddle import arrays
from panglot_worker.errors import ClientError

REFUSED = "is a pickle, or holds one, which runs whatever its sender wrote; this server takes them with --allow-pickle"
ENDINGS = (".pkl", ".pickle", ".pck", ".p", ".dill", ".joblib", ".pt", ".pth", ".pdparams", ".pdopt")
ZIP = b"PK\x03\x04"
PROTOCOL, NEWEST = b"\x80", b"\x05"
WIDTHS = {pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT8U: 8}
MOST_STEPS = 20_000
LARGEST = 1 << 30
"""Bytes that a client's archive may unfold to."""


def holds(content: bytes, ending: str, name: str, thorough: bool) -> bool:
    """Whether one of the usual loaders would unpickle this file. Of compressed files it looks into .npz and .zip alone.

    With `thorough`, for scripts that unpickle, pickles of the oldest protocols count too: they have no mark, only their
    instructions. Raises ClientError for files that are no arrays, and for archives that unpack to too much.
    """
    if ending in ENDINGS:
        return True
    if content.startswith(arrays.MAGIC):
        return not arrays.is_plain(arrays.description(content))
    if content.startswith(ZIP):
        return any(_is_pickled(member, start) for member, start in _members(content, name))
    if ending in (".npy", ".npz"):
        raise ClientError("%s is no %s file" % (name, ending))
    return _has_protocol(content) or (thorough and reaches_import(content))


def _has_protocol(content: bytes) -> bool:
    return content[:1] == PROTOCOL and content[1:2] <= NEWEST


def _is_pickled(member: str, start: bytes) -> bool:
    if start.startswith(arrays.MAGIC):
        return not arrays.is_plain(arrays.description(start))
    return member.endswith(ENDINGS) or _has_protocol(start)


def _members(content: bytes, name: str) -> Iterator[Tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > LARGEST:
                raise ClientError("%s unfolds to more than %d bytes" % (name, LARGEST), 413)
            for member in members:
                with archive.open(member) as file:
                    yield member.filename, file.read(1 << 16)
    except (zipfile.BadZipFile, RuntimeError, EOFError, NotImplementedError, OSError) as error:
        raise ClientError("%s is no archive that can be read: %s" % (name, error)) from None


CODES = {code.code.encode("latin-1"): code for code in pickletools.opcodes}
NAMED = re.compile(rb"[A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\r?\n")
"""What follows the instructions GLOBAL and INST: a module and a name in it."""


def reaches_import(content: bytes) -> bool:
    """Whether an unpickler would get as far as an import in these bytes.

    Arguments are stepped over, not read, so that nothing an unpickler accepts is taken for an end.
    """
    at = 0
    for _ in range(MOST_STEPS):
        code = CODES.get(content[at : at + 1])
        if code is None or code.name == "STOP":
            return False
        if code.name in ("GLOBAL", "INST"):
            return NAMED.match(content, at + 1) is not None
        if code.name in ("STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
            return True
        at += 1
        length = 0 if code.arg is None else code.arg.n
        if length == pickletools.UP_TO_NEWLINE:
            at = content.find(b"\n", at) + 1
            if not at:
                return False
        elif length < 0:
            width = WIDTHS.get(length, 4)
            at += width + int.from_bytes(content[at : at + width], "little")
        else:
            at += length
    # Hardly any other content has so many valid instructions in a row.
    return True
