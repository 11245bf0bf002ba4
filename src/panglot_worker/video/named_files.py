"""Opening files that a client names: below the folder of `--uri-root`, or any."""

from __future__ import annotations

import os
import stat

from panglot_worker.files.rooted_files import open_below
from panglot_worker.net.hosts import AddressRefused
from panglot_worker.video.limits import SourceRules

FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
MISSING = "there is no such file"
NO_ROOT = "files of the server may be named only below the folder of --uri-root, which is not set"


def open_file(path: str, rules: SourceRules) -> int:
    """A descriptor of a plain file. Raises AddressRefused, in the same words for forbidden and for missing files."""
    try:
        file = _anywhere(path, rules.folder) if rules.any_file else _below(rules.root, path)
    except (OSError, ValueError):
        raise AddressRefused(MISSING) from None
    # Of the open file, not of the path, which may lead to another file by now.
    about = os.fstat(file)
    # A hard link may lead to a file outside of the folder, and no path tells it.
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
    return open_below(root, path)
