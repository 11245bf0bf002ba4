"""Files of a package that Git LFS has not fetched: the folder has only pointers to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from panglot_worker.files.package_files import UnreadableFile, beginning

POINTER = b"version https://git-lfs"
LARGEST_POINTER = 1024
MOST_FILES = 2000
"""How many files of a folder are looked at."""


def lfs_pointers(folder: Path) -> list[str]:
    """The pointers among the files below a folder, by their paths in it."""
    return sorted(str(path.relative_to(folder)) for path in islice(_files(folder), MOST_FILES) if is_pointer(path))


def is_pointer(path: Path) -> bool:
    try:
        return path.stat().st_size <= LARGEST_POINTER and beginning(path, len(POINTER)) == POINTER
    except (OSError, UnreadableFile):
        return False


def _files(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(where, name) for name in sorted(names))
