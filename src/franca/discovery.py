"""What a path is, decided by file names and syntax trees."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from franca.errors import StartError
from franca.settings import suggestion

DETECTORS = {
    "modelarts": "franca.detect.modelarts",
    "tiinfer": "franca.detect.tiinfer",
    "plain": "franca.detect.plain",
}
"""Each module has `detect(path) -> Package | None` and `LOOKS_FOR`. Plain comes last: any script may be plain."""


@dataclass(frozen=True)
class FixedPath:
    """A path of the platform that a script has hard-coded."""

    text: str
    file: str
    line: int
    root: str
    """The part of it that can be a link, such as /home/mind/model."""
    inside: str
    """What the link leads to, in a folder made by `Package.run_links`."""


@dataclass(frozen=True)
class Package:
    """A package that was recognised."""

    name: str
    folder: Path
    script: Path
    dialect: str
    entry: str
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    config: Path | None = None
    arguments: tuple[str, ...] = ()
    """What the script finds in sys.argv."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings the dialect, or the platform's own configuration, chooses."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the dialect's worker side needs to know."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables the script expects."""
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What else `franca inspect` shows: lines by heading."""
    installs: tuple[tuple[str, ...], ...] = ()
    """What the platform would install: the arguments of `pip install`, call by call, run in the package's folder."""
    run_links: Mapping[str, Path] = field(default_factory=dict)
    """Links, by relative path, in the private folder each worker then runs in; without any it runs in `folder`."""
    fixed_paths: tuple[FixedPath, ...] = ()

    def for_worker(self) -> dict[str, object]:
        """What a worker is told."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "script": str(self.script),
            "dialect": self.dialect,
            "arguments": list(self.arguments),
            "options": dict(self.options),
        }


def discover(path: Path, dialect: str = "") -> Package:
    """Recognise a package. Raises StartError when the path is missing, empty, ambiguous or not servable."""
    if dialect and dialect not in DETECTORS:
        known = ", ".join(DETECTORS)
        raise StartError(
            f"there is no dialect '{dialect}'", fix=suggestion(dialect, DETECTORS) or f"use one of {known}"
        )
    if not path.exists():
        siblings = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
        raise StartError(f"{path} does not exist", fix=suggestion(path.name, siblings))
    where = path.resolve()
    if dialect:
        return _forced(where, dialect)
    found = [package for name in DETECTORS if name != "plain" and (package := _detect(name, where))]
    if len(found) > 1:
        what = " or ".join(f"{package.dialect} ({package.reasons[0]})" for package in found)
        raise StartError(f"this could be {what}", file=str(path), fix=f"say which: --dialect {found[0].dialect}")
    if not found:
        return _forced(where, "plain")
    return found[0]


def _detect(dialect: str, path: Path) -> Package | None:
    package: Package | None = importlib.import_module(DETECTORS[dialect]).detect(path)
    return package


def _forced(path: Path, dialect: str) -> Package:
    package = _detect(dialect, path)
    if package is None:
        looked = importlib.import_module(DETECTORS[dialect]).LOOKS_FOR
        raise StartError(f"this is no {dialect} package", file=str(path), fix=f"{dialect} needs {looked}")
    return package


def looks_for() -> str:
    """What makes a package, for a message to someone whose folder is none."""
    modules = {name: importlib.import_module(module) for name, module in DETECTORS.items()}
    return "; ".join(f"{name}: {module.LOOKS_FOR}" for name, module in modules.items())


def config_beside(script: Path) -> Path | None:
    config = script.parent / "franca.toml"
    return config if config.is_file() else None
