"""The packages in a conda file, as far as pip can install them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from panglot.packages import yaml_file

NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]*\])?")
NOT_INSTALLED = ("python", "pip", "setuptools", "wheel")
"""Packages that every environment has."""


def pip_packages(file: Path) -> tuple[str, ...]:
    """The list of pip in a conda file. Raises StartError where the file is no YAML."""
    return tuple(
        str(name)
        for entry in _dependencies(file)
        if isinstance(entry, dict)
        for name in entry.get("pip") or ()
        if not str(name).startswith("-")
    )


def conda_packages(file: Path) -> tuple[str, ...]:
    """The packages of conda itself, with their versions as pip writes them. Raises StartError."""
    return tuple(_named(entry) for entry in _dependencies(file) if isinstance(entry, str) and _named(entry))


def _dependencies(file: Path) -> Iterator[object]:
    dependencies = yaml_file.read(file).table.get("dependencies")
    yield from dependencies if isinstance(dependencies, list) else ()


def _named(entry: str) -> str:
    """`conda-forge::numpy=1.26.0=py311` as `numpy==1.26.0`; empty for a package that every environment has."""
    wanted = entry.rpartition("::")[2].replace(" ", "")
    name = NAME.match(wanted)
    if name is None or name[0].lower() in NOT_INSTALLED:
        return ""
    rest = wanted[name.end() :]
    if not rest.startswith("="):
        return wanted
    version = rest.lstrip("=").partition("=")[0]
    return f"{name[0]}=={version}" if version and "*" not in version else name[0]
