"""Numpy's files from clients: never a pickle inside, and of a size that fits."""

from __future__ import annotations

import io
import re
import zipfile

from panglot_worker.errors import ClientError

MAGIC = b"\x93NUMPY"
OBJECTS = re.compile(rb"""['"][|<>=]?O\d*['"]""")
DESCRIPTION = re.compile(rb"""['"]descr['"]:\s*['"]([^'"]*)['"]""")
LARGEST = 1 << 30
"""Bytes that a client's .npz may unfold to."""


def refuse_objects(content: bytes, name: str) -> None:
    """Raises ClientError for arrays of objects, which are pickles, and for archives that unfold to too much."""
    for header in _headers(content, name):
        if OBJECTS.search(header):
            raise ClientError("%s holds Python objects; send arrays of numbers" % name)


def _headers(content: bytes, name: str) -> "list[bytes]":
    if content.startswith(MAGIC):
        return [header(content)]
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > LARGEST:
                raise ClientError("%s unfolds to more than %d bytes" % (name, LARGEST), 413)
            found = []
            for member in members:
                with archive.open(member) as file:
                    found.append(header(file.read(1 << 16)))
            return found
    except (zipfile.BadZipFile, RuntimeError, EOFError, NotImplementedError, OSError) as error:
        raise ClientError("%s is no .npy or .npz file: %s" % (name, error)) from None


def header(start: bytes) -> bytes:
    """The text before an array's numbers."""
    if not start.startswith(MAGIC) or len(start) < 12:
        return b"'O'"
    size = int.from_bytes(start[8:10] if start[6] == 1 else start[8:12], "little")
    return start[10 : 12 + size]


def dtype(content: bytes) -> str:
    """The type of a .npy file's numbers as its header has it, such as `<f8`; empty when it is none."""
    found = DESCRIPTION.search(header(content)) if content.startswith(MAGIC) else None
    return found.group(1).decode("ascii", "replace") if found else ""
