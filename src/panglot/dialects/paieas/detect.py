"""The paieas dialect: a script with a subclass of `allspark.BaseProcessor`, alone or beside the service's app.json."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from panglot.dialects.paieas import processor
from panglot.dialects.paieas.processor import Processor
from panglot.dialects.paieas.service import Service, read
from panglot.errors import StartError, near
from panglot.packages.package import Package, config_beside, outside

LOOKS_FOR = (
    "a script with a subclass of allspark.BaseProcessor: the processor_entry of app.json, app.py, or the only one"
)
SCRIPT = "app.py"
KEEPALIVE = 5000
"""Milliseconds that the platform gives a request."""
MOST_SCRIPTS = 100


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    service = read(path)
    entry_point = _find(path, service)
    if entry_point is None:
        return None
    folder = entry_point.script.parent
    properties = {**service.properties, **entry_point.properties}
    model = _model(folder, service)
    return Package(
        name=service.name or (folder.name if entry_point.script.name == SCRIPT else entry_point.script.stem),
        folder=folder,
        script=entry_point.script,
        dialect="paieas",
        entry=f"{entry_point.name}.process",
        reasons=(entry_point.reason, *service.reasons),
        problems=(*service.problems, *_environment(folder)),
        config=config_beside(entry_point.script),
        defaults=_defaults(properties),
        options={"model_path": str(model), "service": service.name},
        fixed_paths=processor.fixed_paths(folder, model),
        elsewhere=outside(folder, str(model)),
    )


def _find(path: Path, service: Service) -> Processor | None:
    """The processor at a path: the file itself, the entry of app.json, app.py, or the only script that has one."""
    if path.is_file() and path.suffix == ".py":
        return processor.find(path)
    folder = path if path.is_dir() else path.parent
    if path.is_file() and service.file is None:
        return None
    for entry in (service.entry, SCRIPT):
        entry_point = processor.find(folder / entry) if entry and (folder / entry).is_file() else None
        if entry_point is not None:
            return entry_point
    scripts = [script for script in sorted(folder.glob("*.py"))[:MOST_SCRIPTS] if processor.mentions(script)]
    several = [entry_point for script in scripts if (entry_point := processor.find(script)) is not None]
    if len(several) > 1:
        raise StartError(
            f"{' and '.join(entry_point.script.name for entry_point in several)} could both be the processor",
            file=str(folder),
            fix=f"name one: panglot serve {near(str(several[0].script))}",
        )
    return several[0] if several else None


def _model(folder: Path, service: Service) -> Path:
    """The path that the platform has as /eas/workspace/model: the one that app.json names, `model`, or the folder."""
    for name in (service.model_path, "model"):
        if name and "://" not in name and (folder / name).exists():
            return Path(os.path.normpath(folder / name))
    return folder


def _environment(folder: Path) -> tuple[str, ...]:
    """A hint where the package has an environment that conda packed for the platform."""
    if not (folder / "ENV").is_dir():
        return ()
    return ("ENV, the environment of the platform, is not used: --python ENV/bin/python runs the script in it",)


def _defaults(properties: dict[str, str]) -> dict[str, Any]:
    """The settings that the properties of the script and of app.json stand for."""
    numbers = {name: int(text) for name, text in properties.items() if text.isdecimal() and int(text)}
    defaults: dict[str, Any] = {"timeout": numbers.get("rpc.keepalive", KEEPALIVE) / 1000}
    if "rpc.max_queue_size" in numbers:
        defaults["queue"] = numbers["rpc.max_queue_size"]
    return defaults
