"""The requirements of a package, as commands of pip."""

from __future__ import annotations

import os
from pathlib import Path

from panglot.packages.package import Package
from panglot_worker.files.package_files import LARGEST_CONFIGURATION, content_if_any
from panglot_worker.life.installing import Wish

REQUIREMENTS = "requirements.txt"


def commands(package: Package) -> list[tuple[str, ...]]:
    """The arguments of every `pip install`, in order: the platform's own list, then requirements.txt."""
    arguments = list(package.installs)
    file = requirements(package)
    if file is not None:
        arguments.append(("-r", os.path.relpath(file, package.folder)))
    return arguments


def requirements(package: Package) -> Path | None:
    """The requirements.txt of a package, if it requires anything."""
    for folder in (package.folder, package.folder.parent if package.folder.name == "model" else package.folder):
        file = folder / REQUIREMENTS
        if any(_is_line(line) for line in _text(file).splitlines()):
            return file
    return None


def _text(file: Path) -> str:
    return content_if_any(file, LARGEST_CONFIGURATION).decode("utf-8", "replace")


def _is_line(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def wish(package: Package) -> Wish:
    """The requirements of a package, for this machine or another."""
    wanted = commands(package)
    # Another machine gets the package's folder alone: a file above it travels as text.
    outside = [words[-1] for words in wanted if words[-1].startswith("..")]
    texts = {path: _text(package.folder / path) for path in outside}
    return Wish(package.name, str(package.folder), wanted, texts)
