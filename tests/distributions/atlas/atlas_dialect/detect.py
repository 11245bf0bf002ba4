"""Scripts of the atlas: atlas.py with a function `answer`."""

from __future__ import annotations

from pathlib import Path

from panglot.packages.package import Package, config_beside

SCRIPT = "atlas.py"
LOOKS_FOR = SCRIPT


def detect(path: Path) -> Package | None:
    script = path / SCRIPT
    if not script.is_file():
        return None
    return Package(
        name=path.name,
        folder=path,
        script=script,
        dialect="atlas",
        entry="answer",
        reasons=(f"there is {SCRIPT}",),
        config=config_beside(script),
    )
