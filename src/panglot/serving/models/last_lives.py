"""The descriptions and needs of models from their last load, stored by the digest of their packages.

    STATE_FOLDER/models/SHA256.json       one `LastLife`

With it a model that may sleep need not be loaded when the server starts. The digest covers the files of the package,
and the settings that its workers get. After any change the model is loaded at the start again, where a broken model
ends the server. A folder that cannot be used raises no error: models are loaded as if nothing were stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from panglot import __version__
from panglot.engine.sleep import last_life
from panglot.engine.sleep.last_life import LastLife
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot_worker.files import package_files

MOST_FILES = 10_000
"""Files of a package that are looked at. A package with more has no digest."""
WHOLE = 1 << 20
"""Files up to this size count with their bytes; larger ones with size and time: reading them takes minutes."""
MOST_BYTES = 256 << 20
"""Bytes that are read of all files of a package; further files count with size and time."""
LARGEST = 16 << 20
"""Bytes of a stored life that are read."""
UNUSED = 90 * 24 * 3600
"""Seconds after which a stored life that nobody used is removed."""
LEFT_OUT = ("__pycache__", ".git")
"""Folders that say nothing about a package, and change by themselves."""

log = logging.getLogger("panglot")


def default_folder() -> Path:
    """The folder for state that outlives a server, by the XDG base directories."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base) / "panglot"


class LastLives:
    """The stored lives. All methods read or write files: call them on a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "models"
        self._failed = False

    def find(self, package: Package, settings: Settings) -> LastLife | None:
        """The stored life of a package in its present state; None: there is none, or none that can be read."""
        path = self._path(package, settings)
        if path is None:
            return None
        try:
            life = last_life.read(package_files.text(path, LARGEST))
            # The time of the file is the time of its last use: see `_remove_unused`.
            os.utime(path)
        except (OSError, package_files.UnreadableFile):
            return None
        return life

    def store(self, package: Package, settings: Settings, life: LastLife) -> None:
        """Store the life of a package in its present state."""
        path = self._path(package, settings)
        if path is None:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_unused()
            # Renamed when it is whole: another server may read it at this moment.
            with tempfile.NamedTemporaryFile("w", dir=self._folder, suffix=".new", delete=False) as file:
                file.write(life.text())
            os.replace(file.name, path)
        except (OSError, ValueError) as error:
            if not self._failed:
                self._failed = True
                message = "models are loaded at every start: nothing can be stored in %s: %s (fix: --state-folder DIR)"
                log.warning(message, self._folder, getattr(error, "strerror", None) or error)

    def _path(self, package: Package, settings: Settings) -> Path | None:
        name = digest(package, settings, self._folder)
        return self._folder / f"{name}.json" if name else None

    def _remove_unused(self) -> None:
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - UNUSED:
                    path.unlink()


def digest(package: Package, settings: Settings, left_out: Path) -> str:
    """A word that changes with the package, with the settings of its workers, and with Panglot; empty: too many files.

    The folder `left_out` may lie in the package and does not count.
    """
    given = {"panglot": __version__, "package": package.for_worker(), "settings": settings.for_worker()}
    more = {name: str(getattr(settings, name)) for name in ("python", "workers", "pools", "install", "ray")}
    known = hashlib.sha256(json.dumps([given, more], sort_keys=True, default=str).encode())
    left = MOST_BYTES
    try:
        for count, path in enumerate(itertools.chain(map(str, package.elsewhere), _files(package.root, left_out))):
            if count >= MOST_FILES:
                return ""
            about = _about(path)
            whole = about is not None and stat.S_ISREG(about.st_mode) and about.st_size <= min(WHOLE, left)
            left -= about.st_size if about is not None and whole else 0
            known.update(_file_digest(path, package.root, about, whole))
    except OSError:
        return ""
    return known.hexdigest()


def _files(root: Path, left_out: Path) -> Iterator[str]:
    """All files below a folder, in an order that does not change. Files of linked folders are there too, once each."""
    seen: set[tuple[int, int]] = set()
    with contextlib.suppress(OSError):
        # The folder may not be there yet, or cannot be made: `store` tells that.
        apart = os.stat(left_out)
        seen.add((apart.st_dev, apart.st_ino))
    for folder, folders, names in os.walk(root, followlinks=True):
        about = os.stat(folder)
        if (about.st_dev, about.st_ino) in seen:
            # Otherwise a link that leads back to a folder above would be followed for ever.
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        yield from (os.path.join(folder, name) for name in sorted(names))


def _about(path: str) -> os.stat_result | None:
    """The status of a file; None for a link that leads nowhere. Raises OSError."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _file_digest(path: str, root: Path, about: os.stat_result | None, whole: bool) -> bytes:
    """A digest of a file: of its name and, with `whole`, of its bytes, else of size and time. Raises OSError."""
    words: list[object] = [os.path.relpath(path, root)]
    if whole:
        words.append(Path(path).read_bytes())
    elif about is not None and stat.S_ISREG(about.st_mode):
        words += [about.st_size, about.st_mtime_ns]
    return hashlib.sha256(repr(words).encode()).digest()
