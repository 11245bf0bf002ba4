"""The request that a package shows: a file of the folder that was made to be sent."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from panglot_worker.files.package_files import UnreadableFile, json_value

JSON_NAMES = ("request.json", "sample_input.json", "input.json", "example.json")
TEXT_NAMES = ("sample_text.txt", "sample_input.txt", "sample.txt", "request.txt")
PICTURES = (".jpg", ".jpeg", ".png")
LARGEST = 65536


def example(folder: Path) -> dict[str, Any] | None:
    """An example of a request, as a description has it; None where the package has none."""
    for name in JSON_NAMES:
        try:
            return {"kind": "json", "value": json_value(folder / name, LARGEST)}
        except (OSError, UnreadableFile):
            continue
    files = [name for name in TEXT_NAMES if (folder / name).is_file()]
    files += [file.name for file in sorted(folder.iterdir()) if file.suffix.lower() in PICTURES and file.is_file()]
    if not files:
        return None
    return {"kind": "file", "name": files[0], "type": mimetypes.guess_type(files[0])[0] or "application/octet-stream"}
