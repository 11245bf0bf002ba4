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
    """The beginning of it, in place of which there can be a link, such as /home/mind/model."""
    inside: str = ""
    """The target of the link: a path in the folder of `Package.run_links`, or in the package where it has none."""


@dataclass(frozen=True)
class ChainStep:
    """A call of another model, one of several that answer a request one after the other."""

    model: str
    version: str
    """Empty: the newest."""
    title: str
    """The beginning of its errors."""
    hop: str
    """Instructions for its worker about the tensors: JSON, see `panglot_worker.tensors.handing`."""


@dataclass(frozen=True)
class Package:
    """The facts about a package that the detector of a dialect finds."""

    name: str
    folder: Path
    script: Path
    dialect: str
    entry: str
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    config: Path | None = None
    arguments: tuple[str, ...] = ()
    """The arguments of the script, for its sys.argv."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the dialect, or the platform's own configuration, chooses."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values for the dialect's worker half."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the script expects."""
    takes: str = ""
    """The function that gets the input of a request; empty: `entry` gets it."""
    gives: str = ""
    """The function that returns the answer; empty: `entry` returns it."""
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further facts for `panglot inspect`: lines by heading."""
    installs: tuple[tuple[str, ...], ...] = ()
    """Packages that the platform installs: the arguments of each `pip install`, run in the package's folder."""
    run_links: Mapping[str, Path] = field(default_factory=dict)
    """Links, by relative path, for a private folder in which each worker runs; without links it runs in `folder`."""
    fixed_paths: tuple[FixedPath, ...] = ()
    tries_elsewhere: int = 0
    """How often a call is given to another worker when the script's answer requests it."""
    runs_to_its_end: bool = False
    """Whether the package serves nothing: its dialect's `alone.run` runs it, and the command ends with it."""
    sticks_by: str = ""
    """A parameter of requests with tensors: requests with the same value of it run in the same worker. Empty: there is
    no such parameter."""
    calls_models: bool = False
    """Whether its script may call other models of the server."""
    chain: tuple[ChainStep, ...] = ()
    """The models that answer its requests with tensors, one after the other. Its own worker answers all other
    requests."""
    retained_bytes: int = 0
    """The most bytes a worker may leave to its successor, in memory that outlives it; 0: nothing."""
    stores_inputs: bool = False
    """Whether its workers store files of requests, for which each has a folder that is removed when it has ended."""
    captures_native_output: bool = False
    """Whether the output of its calls includes the output of C libraries and started programs."""
    worker_half: Path | None = None
    """The folder of the dialect's worker half; None: Panglot has the dialect itself."""
    whole: Path | None = None
    """The folder with all of the package; None: it is `folder`, in which the script runs."""
    above: Path | None = None
    """A folder above `root` at which names of modules or files begin. Of its contents only `root` is needed."""
    archive: Path | None = None
    """The archive of the package; None: the package is no archive."""
    unpacked: Path | None = None
    """The folder that the archive was unpacked to."""
    elsewhere: tuple[Path, ...] = ()
    """Paths of this machine outside of `root` that the worker reads."""

    @property
    def root(self) -> Path:
        """The folder to copy when the package goes to another machine."""
        return self.whole or self.folder

    def in_archive(self, text: str) -> str:
        """A text with the archive in place of the folder that it was unpacked to: users know only the archive."""
        return text.replace(str(self.unpacked), str(self.archive)) if self.unpacked is not None else text

    def for_worker(self) -> dict[str, object]:
        """The description of the package for a worker, as JSON can hold it."""
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
