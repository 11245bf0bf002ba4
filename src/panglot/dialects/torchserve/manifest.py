"""The manifest of a model archive: its MAR-INF/MANIFEST.json, or a manifest made from a folder of sources."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.packages.source import unreadable
from panglot_worker.files.package_files import UnreadableFile, json_value

FILE = Path("MAR-INF", "MANIFEST.json")
LARGEST = 1 << 20
KEYS = {
    "model_name": "modelName",
    "version": "modelVersion",
    "handler": "handler",
    "serialized_file": "serializedFile",
    "model_file": "modelFile",
    "config_file": "configFile",
    "requirements_file": "requirementsFile",
}
"""The fields of a Manifest, by their names in the file's table `model`."""


@dataclass(frozen=True)
class Manifest:
    """The parts of a model, by the names of their files in the model's folder; empty where there is none."""

    model_name: str = ""
    handler: str = ""
    """`module`, `module.py`, `module:function`, or the name of a handler that the platform brings."""
    version: str = ""
    serialized_file: str = ""
    model_file: str = ""
    config_file: str = ""
    requirements_file: str = ""
    written: dict[str, Any] | None = None
    """The manifest as its file has it; None where it is made here."""

    @property
    def module(self) -> str:
        """The module that the handler is in."""
        name = self.handler.partition(":")[0].rpartition("/")[2]
        return name.removesuffix(".py")

    @property
    def table(self) -> dict[str, Any]:
        """What scripts find as `context.manifest`."""
        if self.written is not None:
            return self.written
        named = {key: getattr(self, field) for field, key in KEYS.items()}
        model = {key: value for key, value in named.items() if value}
        return {"createdOn": "", "runtime": "python", "model": model, "archiverVersion": "0.12.0"}

    def filled(self, **fields: str) -> Manifest:
        """This manifest, with these values in its empty fields."""
        chosen: dict[str, Any] = {name: getattr(self, name) or value for name, value in fields.items()}
        return dataclasses.replace(self, **chosen)


def read(folder: Path) -> Manifest | None:
    """The manifest of an unpacked archive; None where the folder is none. Raises StartError."""
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        written = json_value(file, LARGEST)
    except UnreadableFile as error:
        raise unreadable(error) from None
    if isinstance(written, dict) and "workflow" in written:
        raise workflow_refused(file)
    model = written.get("model") if isinstance(written, dict) else None
    if not isinstance(model, dict) or not isinstance(model.get("handler"), str) or not model["handler"]:
        problem = 'this manifest has no "model" with a "handler"'
        raise StartError(problem, file=str(file), fix="make the archive with torch-model-archiver --handler")
    texts = {field: str(model.get(key) or "") for field, key in KEYS.items()}
    return Manifest(**texts, written=written)


def workflow_refused(file: Path) -> StartError:
    """The error about an archive of a workflow."""
    return StartError(
        "workflows of TorchServe, graphs of several models, are not served",
        file=str(file),
        fix="serve each of its models, and call them one after the other",
    )
