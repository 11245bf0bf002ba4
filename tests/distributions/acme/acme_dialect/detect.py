"""Scripts for ACME's question desk: acme_service.py with a function marked by @acme.answers."""

from __future__ import annotations

from pathlib import Path

from panglot.packages.package import Package, config_beside
from panglot.packages.source import imported, parse

SCRIPT = "acme_service.py"
ARCHIVES = (".desk",)
LOOKS_FOR = f"{SCRIPT} that imports acme"


def detect(path: Path) -> Package | None:
    """The package, None when it is none of ours, StartError when it is ours but cannot work."""
    script = path / SCRIPT if path.is_dir() else path
    if script.name != SCRIPT or not script.is_file():
        return None
    line = imported(parse(script)).get("acme")
    if line is None:
        return None
    return Package(
        name=script.parent.name,
        folder=script.parent,
        script=script,
        dialect="acme",
        entry="@acme.answers",
        reasons=(f"{SCRIPT}:{line} imports acme",),
        config=config_beside(script),
        defaults={"timeout": 7.0},
    )
