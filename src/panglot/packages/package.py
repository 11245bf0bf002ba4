"""A package that was recognised: what it is, where it is, and what it needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class FixedPath:
    """A path of the platform that a script has hard-coded."""

    text: str
    file: str
    line: int
    root: str
    """The beginning of it that can be a link, such as /home/mind/model."""
    inside: str = ""
    """What the link leads to, in a folder made by `Package.run_links`, or in the package where it has none."""


@dataclass(frozen=True)
class ChainStep:
    """A call of another model, one of several that answer a request one after the other."""

    model: str
    version: str
    """Empty: the newest."""
    title: str
    """What its errors begin with."""
    hop: str
    """What its worker does with the tensors: JSON, see `panglot_worker.tensors.handing`."""


@dataclass(frozen=True)
class Package:
    """What the detector of a dialect says about a path."""

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
    takes: str = ""
    """The function that gets what a request holds, where another than `entry` does."""
    gives: str = ""
    """The function whose result is the answer, where another than `entry` gives it."""
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What else `panglot inspect` shows: lines by heading."""
    installs: tuple[tuple[str, ...], ...] = ()
    """What the platform would install: the arguments of `pip install`, call by call, run in the package's folder."""
    run_links: Mapping[str, Path] = field(default_factory=dict)
    """Links, by relative path, in the private folder each worker then runs in; without any it runs in `folder`."""
    fixed_paths: tuple[FixedPath, ...] = ()
    tries_elsewhere: int = 0
    """How often a call is given to another worker when the script's answer requests it."""
    runs_to_its_end: bool = False
    """Whether the package serves nothing: its dialect's `alone.run` runs it, and the command ends with it."""
    sticks_by: str = ""
    """A parameter of requests with tensors: those with the same value run in the same worker; empty: in any."""
    chain: tuple[ChainStep, ...] = ()
    """The models that answer its requests with tensors, where they are called one after the other. Its own worker does
    what is left."""
    retained_bytes: int = 0
    """The most bytes a worker may leave to its successor, in memory that outlives it; 0: nothing."""
    captures_native_output: bool = False
    """Whether its calls' output includes what C libraries and started programs print."""
    worker_half: Path | None = None
    """The folder of the dialect's worker half; None: that of a dialect of Panglot."""
    whole: Path | None = None
    """The folder that has all of the package, where that is more than `folder`, in which the script runs."""
    above: Path | None = None
    """A folder above `root` that names of modules or files begin at; of what is in it, `root` alone is needed."""
    archive: Path | None = None
    """The archive that the package lies in."""
    unpacked: Path | None = None
    """The folder that it was unpacked to."""
    elsewhere: tuple[Path, ...] = ()
    """Paths of this machine outside of `root` that the worker gets."""

    @property
    def root(self) -> Path:
        """The folder to copy when the package goes to another machine."""
        return self.whole or self.folder

    def in_archive(self, text: str) -> str:
        """A text whose paths begin with the archive, which users know, and not with where it was unpacked."""
        return text.replace(str(self.unpacked), str(self.archive)) if self.unpacked is not None else text

    def for_worker(self) -> dict[str, object]:
        """What a worker gets to know about the package."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "script": str(self.script),
            "dialect": self.dialect,
            "dialect_folder": str(self.worker_half or ""),
            "arguments": list(self.arguments),
            "options": dict(self.options),
        }


def outside(root: Path, *paths: str) -> tuple[Path, ...]:
    """The absolute paths that exist on this machine and are not below a folder."""
    absolute = [Path(os.path.normpath(path)) for path in paths if os.path.isabs(path)]
    return tuple(path for path in absolute if os.path.exists(path) and not path.is_relative_to(root))


def config_beside(script: Path) -> Path | None:
    """The panglot.toml in the script's folder, if there is one."""
    config = script.parent / "panglot.toml"
    return config if config.is_file() else None
