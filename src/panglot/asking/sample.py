"""An input to show a request with, found in the package without running it."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from panglot.asking.base import About, Given, media_type
from panglot.package import Package

LARGEST = 1 << 16
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
            if file.is_file() and file.stat().st_size <= LARGEST:
                return Given(name, value=json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return None


def _picture(folder: Path) -> Given | None:
    for name in FOLDERS:
        with contextlib.suppress(OSError):
            pictures = (file for file in sorted((folder / name).iterdir()) if media_type(file).startswith("image/"))
            for file in pictures:
                return Given(file.name, file=Path(os.path.relpath(file)))
    return None
