"""A folder of models, as Triton lays it out too: `NAME` is a package, or has versions `NAME/1`, `NAME/2`.

Archives in it are models too, by their names without the ending.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from panglot.errors import StartError
from panglot.settings import suggestion

CONFIG = "config.pbtxt"
FIRST_VERSION = "1"
"""The version of a model that has no version folders."""


def age(version: str) -> tuple[int, str]:
    """The key that sorts versions: numbers by their value, and behind them all other names."""
    return (int(version), "") if is_number(version) else (1 << 63, version)


def is_number(name: str) -> bool:
    """Whether the name of a folder is one of a version."""
    # `isdigit` alone is also true for digits that `int` does not read, such as ².
    return name.isascii() and name.isdigit()


class FoundModel(NamedTuple):
    """One version of a model, and its path."""

    name: str
    version: str
    path: Path
    config: Path | None = None
    """Its config.pbtxt, which lies beside the folders of versions."""


class ModelFolder:
    """A folder of models. Every method reads it again: models may come and go while the server runs."""

    def __init__(self, path: Path, archives: tuple[str, ...] = ()) -> None:
        self.path = path
        self._endings = tuple(sorted(archives, key=len, reverse=True))
        """The endings of files that are packages too."""

    def names(self) -> list[str]:
        """The names of all models in it. Raises StartError when it cannot be read."""
        return sorted(self._entries())

    def _entries(self) -> dict[str, Path]:
        """Folders by their names, and archives by their names without the ending. A folder wins over an archive."""
        try:
            entries = sorted(entry for entry in self.path.iterdir() if entry.name[0] not in "._")
            archives = {self._stem(entry): entry for entry in entries if self._stem(entry) and entry.is_file()}
            return {**archives, **{entry.name: entry for entry in entries if entry.is_dir()}}
        except OSError as error:
            raise StartError(f"this folder cannot be read: {error.strerror}", file=str(self.path)) from None

    def _stem(self, entry: Path) -> str:
        """The name of an archive without its ending; empty for other files."""
        return next((entry.name[: -len(end)] for end in self._endings if entry.name.lower().endswith(end)), "")

    def versions(self, name: str) -> list[FoundModel]:
        """The versions of a model, the oldest first. Raises StartError when there is no such model."""
        known = self._entries()
        if name not in known:
            raise StartError(f"there is no model '{name}' in {self.path}", fix=suggestion(name, sorted(known)))
        folder = known[name]
        if folder.is_file():
            return [FoundModel(name, FIRST_VERSION, folder)]
        config = folder / CONFIG if (folder / CONFIG).is_file() else None
        numbers = [entry.name for entry in folder.iterdir() if is_number(entry.name) and entry.is_dir()]
        if not numbers:
            return [FoundModel(name, FIRST_VERSION, folder, config)]
        return [FoundModel(name, version, folder / version, config) for version in sorted(numbers, key=age)]
