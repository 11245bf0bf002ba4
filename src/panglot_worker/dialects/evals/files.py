"""The files a script finds at init: fresh copies of its own, for it may rename and rewrite them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tarfile
from typing import Any, Dict

from panglot_worker.dialects.evals.downloads import Downloads
from panglot_worker.errors import ScriptError

LARGE = 256 << 20
"""Bytes above which `link_large` links a file instead of copying it."""
FICLONE = 0x40049409


class Workplace:
    """The folders of one worker start: `models`, `customs`, and the workspace."""

    def __init__(self, folder: str, options: Dict[str, Any], downloads: Downloads) -> None:
        self.folder = folder
        self.options = options
        self.downloads = downloads
        self.link_large = bool(options.get("link_large"))

    def workspace(self) -> str:
        """A folder the script may write in. Raises ScriptError when the one it was given cannot be made."""
        chosen = str(self.options.get("workspace") or os.path.join(self.folder, "workspace"))
        path = os.path.join(chosen, "init")
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            fix = "name another as workspace, or none"
            raise ScriptError("the workspace %s cannot be made: %s" % (path, error.strerror), fix=fix) from None
        return path

    def model_files(self) -> Dict[str, str]:
        """The files of the model by name: those of the archive, and those that are named one by one."""
        files = {}
        archive = str(self.options.get("tar_file") or "")
        if archive:
            local = self.downloads.path("the archive", archive)
            files = self._unpack(local, os.path.join(self.folder, "models"))
        files.update(self._copies(self.options.get("model_files") or {}, "models"))
        return files

    def custom_files(self) -> Dict[str, str]:
        return self._copies(self.options.get("custom_files") or {}, "customs")

    def _copies(self, files: Dict[str, str], subfolder: str) -> Dict[str, str]:
        copied = {}
        for name, source in files.items():
            target = os.path.join(self.folder, subfolder, *safe_names(name, source))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            source = self.downloads.path(name, source)
            try:
                self._copy(source, target)
            except OSError as error:
                raise ScriptError("the file %s cannot be copied: %s" % (name, error.strerror), source) from None
            copied[name] = target
        return copied

    def _copy(self, source: str, target: str) -> None:
        if self.link_large and os.path.getsize(source) > LARGE:
            os.symlink(os.path.realpath(source), target)
            return
        with open(source, "rb") as original, open(target, "xb") as copy:
            # A clone shares the blocks of the original until one of them is written to. Not every file system can.
            with contextlib.suppress(OSError):
                fcntl.ioctl(copy.fileno(), FICLONE, original.fileno())
                return
            shutil.copyfileobj(original, copy, 1 << 20)

    def _unpack(self, archive: str, subfolder: str) -> Dict[str, str]:
        """The plain files of an uncompressed archive, by their names in it. Raises ScriptError."""
        unpacked = {}
        try:
            with tarfile.open(archive, "r:") as members:
                for member in members:
                    if member.name.startswith("./.") or member.isdir():
                        continue
                    if not member.isfile():
                        raise ScriptError("%s is no plain file" % member.name, archive, fix="pack files only")
                    target = os.path.join(subfolder, *safe_names(member.name, archive))
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    original = members.extractfile(member)
                    assert original is not None
                    with original, open(target, "wb") as copy:
                        shutil.copyfileobj(original, copy, 1 << 20)
                    unpacked[member.name] = target
        except (tarfile.TarError, OSError) as error:
            fix = "the platform takes uncompressed archives: gunzip it" if _is_gzip(archive) else ""
            raise ScriptError("the archive cannot be read: %s" % error, archive, fix=fix) from None
        return unpacked


def safe_names(name: str, where: str) -> "list[str]":
    """The components of a relative name. Raises ScriptError for one that would leave its folder."""
    names = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in names or not names or "\0" in name:
        raise ScriptError("%r leads out of its folder" % name, where, fix="give it a plain name")
    return names


def _is_gzip(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except OSError:
        return False
