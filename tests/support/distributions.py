"""Distributions that bring a dialect, laid out without pip."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

DISTRIBUTIONS = Path(__file__).resolve().parents[1] / "distributions"


def install(distribution: Path, folder: Path) -> None:
    """Lay out a distribution as pip does, as far as entry points need it."""
    project = tomllib.loads((distribution / "pyproject.toml").read_text())["project"]
    shutil.copytree(distribution, folder)
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [line for group, names in groups for line in (f"[{group}]", *(f"{n} = {v}" for n, v in names.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines))
