"""Archives of TorchServe, made as its archiver makes them."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path


def manifest(handler: str, name: str, version: str = "1.0", **more: str) -> str:
    model = {"modelName": name, "handler": handler, "modelVersion": version, **more}
    table = {"createdOn": "16/09/2024 12:00:00", "runtime": "python", "model": model, "archiverVersion": "0.12.0"}
    return json.dumps(table, indent=2)


def archive(folder: Path, target: Path, handler: str, version: str = "1.0", **more: str) -> Path:
    """The files of a folder as an archive: a .mar, a .tar.gz, or a folder, by the ending of `target`."""
    name = target.name.partition(".")[0]
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
    files.pop("README.md", None)
    files["MAR-INF/MANIFEST.json"] = manifest(handler, name, version, **more).encode()
    if target.suffix == ".mar":
        with zipfile.ZipFile(target, "w") as made:
            for path, content in files.items():
                made.writestr(path, content)
        return target
    unpacked = target if not target.suffix else target.parent / f".{name}"
    for path, content in files.items():
        (unpacked / path).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / path).write_bytes(content)
    if target.suffix:
        with tarfile.open(target, "w:gz") as made_tar:
            made_tar.add(unpacked, ".")
    return target
