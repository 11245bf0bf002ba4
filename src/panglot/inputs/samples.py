"""Files of a package that can be sent to it, found without running it."""

from __future__ import annotations

import contextlib
import fnmatch
import mimetypes
import os
from pathlib import Path

from panglot.inputs.base import OCTETS, About, Given, media_type
from panglot.packages.package import Package
from panglot_worker.files.package_files import UnreadableFile, json_value

LARGEST_JSON = 1 << 16
LARGEST_FILE = 8 << 20
"""Larger files are not taken as samples."""
NAMES = ("request.json", "example.json", "sample.json")
FOLDERS = ("", "images", "samples", "data")
"""The folders of a package that may have pictures to try it with."""


def sample(package: Package, about: About) -> Given:
    """A picture where the package is known to take files, else a request.json, else a picture, else `...`."""
    kind = (about.api.get("example") or {}).get("kind")
    seen, value = picture(package.folder), request_value(package.folder)
    candidates = (seen, value) if kind in ("form", "file") else (value, seen)
    return next((given for given in candidates if given is not None), Given("request.json", value=...))


def request_file(folder: Path) -> Path | None:
    """The file with a request to try a package with."""
    for name in NAMES:
        with contextlib.suppress(OSError):
            if (folder / name).is_file() and (folder / name).stat().st_size <= LARGEST_JSON:
                return folder / name
    return None


def request_value(folder: Path) -> Given | None:
    """The request in this file; None without a file, or where it cannot be read."""
    file = request_file(folder)
    if file is None:
        return None
    try:
        return Given(file.name, value=json_value(file, LARGEST_JSON))
    except (OSError, UnreadableFile):
        return None


def picture(folder: Path) -> Given | None:
    """A picture of the package, by its path from the current folder."""
    for name in FOLDERS:
        file = of_type(folder / name, "image/*")
        if file is not None:
            return Given(file.name, file=Path(os.path.relpath(file)))
    return None


def files_in(folder: Path, most: int) -> list[Path]:
    """The first files of a folder by name, without large and hidden ones; none where there is no such folder."""
    with contextlib.suppress(OSError):
        files = [file for file in sorted(folder.iterdir()) if not file.name.startswith((".", "_"))]
        return [file for file in files if file.is_file() and file.stat().st_size <= LARGEST_FILE][:most]
    return []


def of_type(folder: Path, content_type: str, preferred: str = "") -> Path | None:
    """The file of this name, or else the first of this type, such as image/png or image/*; None when there is none."""
    if preferred and (folder / preferred).is_file():
        return folder / preferred
    if not content_type or content_type in ("*/*", OCTETS):
        return None
    with contextlib.suppress(OSError):
        for file in sorted(folder.iterdir()):
            is_alike = fnmatch.fnmatch(media_type(file), content_type) or _may_end(file, content_type)
            if is_alike and file.is_file() and file.stat().st_size <= LARGEST_FILE:
                return file
    return None


def _may_end(file: Path, content_type: str) -> bool:
    """Whether files of a type may have this ending, although another type is more usual for it."""
    return file.suffix.lower() in mimetypes.guess_all_extensions(content_type)


def likely_name(field: str, content_type: str) -> Path:
    """A likely name for the file of a field, where there is no file."""
    return Path(field + (mimetypes.guess_extension(content_type or OCTETS) or ".bin"))
