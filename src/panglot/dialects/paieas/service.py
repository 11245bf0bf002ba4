"""The description of a service, app.json, as the platform's command line takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot_worker.files.package_files import UnreadableFile, json_value

NAMES = ("app.json", "service.json")
LARGEST = 1 << 20


@dataclass(frozen=True)
class Service:
    """The values of app.json that mean something for a server on one machine."""

    file: Path | None = None
    name: str = ""
    entry: str = ""
    """The script, relative to the folder."""
    model_path: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    """Its table `rpc`, with the names that the script's own properties have."""
    problems: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return (f"{self.file.name} names the service {self.name}",) if self.file is not None and self.name else ()


def read(path: Path) -> Service:
    """The description at a path: this file, or a file in the folder; an empty description where there is none."""
    folder = path if path.is_dir() else path.parent
    files = [path] if path.suffix == ".json" else [folder / name for name in NAMES]
    for file in files:
        if file.is_file():
            try:
                table = json_value(file, LARGEST)
            except UnreadableFile as error:
                return Service(problems=(f"{file.name} is not read: {error.problem}",))
            if isinstance(table, dict) and {"processor_entry", "processor_path", "processor"} & set(table):
                return _service(file, table)
    return Service()


def _service(file: Path, table: dict[str, Any]) -> Service:
    metadata = table.get("metadata")
    rpc = metadata.get("rpc") if isinstance(metadata, dict) else None
    properties = {f"rpc.{name}": str(value) for name, value in rpc.items()} if isinstance(rpc, dict) else {}
    return Service(
        file,
        _text(table, "name"),
        _text(table, "processor_entry"),
        _text(table, "model_path"),
        properties,
    )


def _text(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    return value if isinstance(value, str) else ""
