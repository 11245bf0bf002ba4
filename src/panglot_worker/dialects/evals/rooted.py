"""Files that requests name: only plain ones, only below one folder, opened step by step so that no link leads out."""

from __future__ import annotations

import os
import stat

LONGEST_NAME = 255
FORBIDDEN = ("\0", "\\", "%", "~", "://")
STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LAST = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Unreadable(Exception):
    """There is no such file for this request, for whatever reason."""


def read(root: str, path: str, most: int, linked: bool = False) -> bytes:
    """The bytes of a file; `path` is below `root`, relative or absolute. Raises Unreadable.

    With `linked` it may have several names: what a front has sent to a node is kept there by links.
    """
    if not root:
        raise Unreadable("no uri_root is set")
    names = _names(root, path)
    try:
        return _read(root, names, most, linked)
    except OSError as error:
        raise Unreadable(str(error)) from None


def _names(root: str, path: str) -> "list[str]":
    """The components below the root. Raises Unreadable for what no honest path has."""
    if any(part in path for part in FORBIDDEN):
        raise Unreadable("the path holds a character it must not")
    if path.startswith("/"):
        below = root.rstrip("/") + "/"
        if not path.startswith(below):
            raise Unreadable("the path is not below uri_root")
        path = path[len(below) :]
    names = path.split("/")
    for name in names:
        if not name or name.endswith(".") or len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
            raise Unreadable("the path has a component it must not have")
    return names


def _read(root: str, names: "list[str]", most: int, linked: bool) -> bytes:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            inner = os.open(name, STEP, dir_fd=folder)
            os.close(folder)
            folder = inner
        file = os.open(names[-1], LAST, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or (about.st_nlink != 1 and not linked) or about.st_size > most:
            raise Unreadable("it is no plain file, has several names, or is too large")
        return _whole(file, most)
    finally:
        os.close(file)


def _whole(file: int, most: int) -> bytes:
    """A file may grow while it is read."""
    pieces: "list[bytes]" = []
    size = 0
    while size <= most:
        piece = os.read(file, min(1 << 20, most + 1 - size))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    raise Unreadable("it is too large")
