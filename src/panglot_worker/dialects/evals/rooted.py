"""Files that requests name: only plain ones, only below one folder."""

from __future__ import annotations

import os
import stat

from panglot_worker.files.rooted_files import open_below


class Unreadable(Exception):
    """There is no such file for this request, for whatever reason."""


def read(root: str, path: str, most: int, linked: bool = False) -> bytes:
    """The bytes of a file; `path` is below `root`, relative or absolute. Raises Unreadable.

    With `linked` it may have several names: a node stores the files that a front has sent as links.
    """
    if not root:
        raise Unreadable("no uri_root is set")
    try:
        file = open_below(root, path)
    except (OSError, ValueError) as error:
        raise Unreadable(str(error)) from None
    try:
        about = os.fstat(file)
        # A second name may be a hard link, which shows a file from elsewhere inside of the root.
        if not stat.S_ISREG(about.st_mode) or (about.st_nlink != 1 and not linked) or about.st_size > most:
            raise Unreadable("it is no plain file, has several names, or is too large")
        return _whole(file, most)
    except OSError as error:
        raise Unreadable(str(error)) from None
    finally:
        os.close(file)


def _whole(file: int, most: int) -> bytes:
    """The bytes of a file, which may grow while it is read. Raises Unreadable."""
    pieces: "list[bytes]" = []
    size = 0
    while size <= most:
        # One byte more than allowed: it tells a file of exactly this size from a larger one.
        piece = os.read(file, min(1 << 20, most + 1 - size))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    raise Unreadable("it is too large")
