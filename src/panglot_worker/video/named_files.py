"""Opening files that a client names, so that no link and no odd name leads elsewhere."""

from __future__ import annotations

import os
import stat
from typing import List

from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video.limits import SourceRules

FORBIDDEN = ("\0", "\\", "%", "~", "://")
STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
MISSING = "there is no such file"
NO_ROOT = "files of the server may be named only below the folder of --uri-root, which is not set"


def open_file(path: str, rules: SourceRules) -> int:
    """A descriptor of a plain file. Raises AddressRefused, in the same words for the forbidden and the missing."""
    try:
        file = _anywhere(path, rules.folder) if rules.any_file else _below(rules.root, path)
    except (OSError, ValueError):
        raise AddressRefused(MISSING) from None
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or (about.st_nlink != 1 and not (rules.any_file or rules.linked)):
        os.close(file)
        raise AddressRefused(MISSING)
    return file


def _anywhere(path: str, folder: str) -> int:
    try:
        return os.open(path, FILE)
    except FileNotFoundError:
        return os.open(os.path.join(folder, path), FILE)


def _below(root: str, path: str) -> int:
    if not root:
        raise AddressRefused(NO_ROOT)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = _names(root, path)
        for name in names[:-1]:
            inner = os.open(name, STEP, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(names[-1], FILE | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def _names(root: str, path: str) -> List[str]:
    """The components below the root. Raises AddressRefused for what no honest path has."""
    below = root.rstrip("/") + "/"
    if path.startswith(below):
        path = path[len(below) :]
    names = path.split("/")
    if any(text in path for text in FORBIDDEN) or any(not name or name.endswith(".") for name in names):
        raise AddressRefused(MISSING)
    return names
