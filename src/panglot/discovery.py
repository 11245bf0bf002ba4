"""What a path is, decided by file names and syntax trees."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.settings import Settings, suggestion

DETECTORS = {
    "evals": "panglot.detect.evals",
    "megflow": "panglot.detect.megflow",
    "modelarts": "panglot.detect.modelarts",
    "tiinfer": "panglot.detect.tiinfer",
    "paddle": "panglot.detect.paddle",
    "plain": "panglot.detect.plain",
}
"""Each module has `detect(path) -> Package | None` and `LOOKS_FOR`, and may have `arrange(package, settings)`.
One with `READS_CONFIG` gives `detect` the file of --config too.

Plain comes last: any script may be plain."""


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
    """What else `panglot inspect` shows: lines by heading."""
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


def discover(path: Path, dialect: str = "", config: str = "") -> Package:
    """Recognise a package. Raises StartError when the path is missing, empty, ambiguous or not servable.

    `config` is a file of the platform's own configuration, for the dialects that read one.
    """
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
        return _forced(where, dialect, config)
    found = [package for name in DETECTORS if name != "plain" and (package := _detect(name, where, config))]
    if len(found) > 1:
        what = " or ".join(f"{package.dialect} ({package.reasons[0]})" for package in found)
        raise StartError(f"this could be {what}", file=str(path), fix=f"say which: --dialect {found[0].dialect}")
    if not found:
        return _forced(where, "plain", config)
    return _heeding(found[0], config)


def arrange(package: Package, settings: Settings, arguments: Sequence[str] = ()) -> Package:
    """The package with what the command line says: its script's arguments, and its entry. Raises StartError."""
    package = dataclasses.replace(package, arguments=(*package.arguments, *arguments))
    own = getattr(importlib.import_module(DETECTORS[package.dialect]), "arrange", None)
    if own is not None:
        arranged: Package = own(package, settings)
        return arranged
    if settings.entry:
        raise StartError(f"--entry is of no use to {package.dialect} packages", fix="leave it out")
    return package


def _detect(dialect: str, path: Path, config: str = "") -> Package | None:
    module = importlib.import_module(DETECTORS[dialect])
    package: Package | None = module.detect(path, config) if _reads_config(module) else module.detect(path)
    return package


def _reads_config(module: Any) -> bool:
    return bool(getattr(module, "READS_CONFIG", False))


def _heeding(package: Package, config: str) -> Package:
    if config and not _reads_config(importlib.import_module(DETECTORS[package.dialect])):
        raise StartError(f"--config is of no use to {package.dialect} packages", fix="leave it out")
    return package


def _forced(path: Path, dialect: str, config: str = "") -> Package:
    package = _detect(dialect, path, config)
    if package is None:
        looked = importlib.import_module(DETECTORS[dialect]).LOOKS_FOR
        raise StartError(f"this is no {dialect} package", file=str(path), fix=f"{dialect} needs {looked}")
    return _heeding(package, config)


def looks_for() -> str:
    """What makes a package, for a message to someone whose folder is none."""
    modules = {name: importlib.import_module(module) for name, module in DETECTORS.items()}
    return "; ".join(f"{name}: {module.LOOKS_FOR}" for name, module in modules.items())


def config_beside(script: Path) -> Path | None:
    config = script.parent / "panglot.toml"
    return config if config.is_file() else None
