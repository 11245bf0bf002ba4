"""A folder of models, as Triton lays it out too: `NAME` is a package, or has versions `NAME/1`, `NAME/2`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from panglot.errors import StartError
from panglot.settings import suggestion

CONFIG = "config.pbtxt"
FIRST_VERSION = "1"
"""The version of a model that names none."""


def age(version: str) -> tuple[int, str]:
    """What versions are sorted by: numbers by their value, and before all other words."""
    return (int(version), "") if is_number(version) else (1 << 63, version)


def is_number(name: str) -> bool:
    """Whether the name of a folder is that of a version."""
    return name.isascii() and name.isdigit()


class FoundModel(NamedTuple):
    """One version of a model, and its path."""

    name: str
    version: str
    path: Path
    config: Path | None = None
    """Its config.pbtxt, which stands beside the versions."""


class ModelFolder:
    """Every method reads the folder anew: models may come and go while the server runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """The names of all models in it. Raises StartError when it cannot be read."""
        try:
            return sorted(entry.name for entry in self.path.iterdir() if entry.is_dir() and entry.name[0] not in "._")
        except OSError as error:
            raise StartError(f"this folder cannot be read: {error.strerror}", file=str(self.path)) from None

    def versions(self, name: str) -> list[FoundModel]:
        """The versions of a model, the oldest first. Raises StartError when there is no such model."""
        known = self.names()
        if name not in known:
            raise StartError(f"there is no model '{name}' in {self.path}", fix=suggestion(name, known))
        folder = self.path / name
        config = folder / CONFIG if (folder / CONFIG).is_file() else None
        numbers = [entry.name for entry in folder.iterdir() if is_number(entry.name) and entry.is_dir()]
        if not numbers:
            return [FoundModel(name, FIRST_VERSION, folder, config)]
        return [FoundModel(name, version, folder / version, config) for version in sorted(numbers, key=age)]
