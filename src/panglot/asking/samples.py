"""Files of a package that can be sent to it, found without running it."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import mimetypes
import os
from pathlib import Path

from panglot.asking.base import OCTETS, About, Given, media_type
from panglot.package import Package

LARGEST_JSON = 1 << 16
LARGEST_FILE = 8 << 20
"""Larger files are not taken as samples."""
NAMES = ("request.json", "example.json", "sample.json")
FOLDERS = ("", "images", "samples", "data")
"""Where packages keep pictures to try them with."""


def sample(package: Package, about: About) -> Given:
    """A picture where the package is known to take files, else a request.json, else a picture, else `...`."""
    kind = (about.api.get("example") or {}).get("kind")
    picture, value = _picture(package.folder), _value(package.folder)
    candidates = (picture, value) if kind in ("form", "file") else (value, picture)
    return next((given for given in candidates if given is not None), Given("request.json", value=...))


def _value(folder: Path) -> Given | None:
    for name in NAMES:
        file = folder / name
        try:
            if file.is_file() and file.stat().st_size <= LARGEST_JSON:
                return Given(name, value=json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return None


def _picture(folder: Path) -> Given | None:
    for name in FOLDERS:
        file = of_type(folder / name, "image/*")
        if file is not None:
            return Given(file.name, file=Path(os.path.relpath(file)))
    return None


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
    """Whether files of the type may end as this one does, though another type is more usual for that."""
    return file.suffix.lower() in mimetypes.guess_all_extensions(content_type)


def likely_name(field: str, content_type: str) -> Path:
    """What a file for a field might be called, where there is none to show."""
    return Path(field + (mimetypes.guess_extension(content_type or OCTETS) or ".bin"))
