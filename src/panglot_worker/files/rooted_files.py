"""Files that clients name below one folder: opened step by step, so that no link and no `..` leads out of it."""

from __future__ import annotations

import os
from typing import List

STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LAST = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
NO_NAMES = ("", ".", "..")
"""Components of a path that are no names. All others are, if the file system has them: `50%.mp4`, `~a`, `a\\b`."""


def open_below(root: str, path: str) -> int:
    """A descriptor of the file at a path below the root; the path may be relative or absolute.

    Raises OSError where there is none, ValueError for a path that no file can have or that leads elsewhere.
    """
    names = _names(root, path)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            # Relative to the open folder: a link that is put in place meanwhile cannot lead out.
            inner = os.open(name, STEP, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(names[-1], LAST, dir_fd=folder)
    finally:
        os.close(folder)


def _names(root: str, path: str) -> List[str]:
    """The components below the root. Raises ValueError."""
    below = root.rstrip("/") + "/"
    names = (path[len(below) :] if path.startswith(below) else path).split("/")
    if any(name in NO_NAMES for name in names):
        raise ValueError("the path has a component that is no name")
    return names
