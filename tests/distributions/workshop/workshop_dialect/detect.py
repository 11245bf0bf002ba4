"""Scripts that end with workshop.start({...})."""

from __future__ import annotations

from pathlib import Path

from panglot.packages.package import Package, config_beside

SCRIPT = "bench.py"
LOOKS_FOR = f"{SCRIPT} that calls workshop.start"


def detect(path: Path) -> Package | None:
    """The package, or None."""
    script = next((path / name for name in (SCRIPT, f"src/{SCRIPT}") if (path / name).is_file()), None)
    if script is None or "workshop" not in script.read_text():
        return None
    return Package(
        name=path.name, folder=path, script=script, dialect="workshop", entry="workshop.start",
        reasons=(f"{SCRIPT} names workshop",), config=config_beside(path / SCRIPT),
    )  # fmt: skip
