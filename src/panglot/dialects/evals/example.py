"""The API of a package, for documents and for a first try."""

from __future__ import annotations

import mimetypes
from typing import Any

from panglot.dialects.evals.layout import ScriptPlace
from panglot.packages.source import imported
from panglot_worker.files.package_files import UnreadableFile, json_value

JSON, FORM, OCTETS = "application/json", "multipart/form-data", "application/octet-stream"
PICTURE_LIBRARIES = {"evals.utils.image", "cv2", "PIL", "PIL.Image", "skimage", "imageio"}
LARGEST_EXAMPLE = 65536
EXAMPLE = {"data": {"uri": "data:application/octet-stream;base64,aGVsbG8="}, "params": {}}

BINARY = {"type": "string", "format": "binary"}
UPLOAD = {
    "type": "object",
    "properties": {"file": BINARY, "params": {"type": "string"}, "attribute": {"type": "string"}},
    "required": ["file"],
}
TASK = {
    "type": "object",
    "properties": {
        "data": {"description": "an object with uri or body, and attribute; or a list of such objects: a group"},
        "params": {},
    },
    "required": ["data"],
}
RESULT = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "result": {}},
    "required": ["code", "message"],
}


def api(where: ScriptPlace) -> dict[str, Any]:
    """The description of the API, as far as it is known without running the script."""
    known: dict[str, Any] = {
        "request_types": [JSON, FORM, OCTETS],
        "request_schema": {"anyOf": [UPLOAD, BINARY, TASK, {"type": "array", "items": TASK}]},
        "response_schema": {"anyOf": [RESULT, {"type": "array", "items": RESULT}, BINARY]},
    }
    example = _example(where)
    return known if example is None else {**known, "example": example}


def _example(where: ScriptPlace) -> dict[str, Any] | None:
    """The request.json of the package, else a picture in it, else a text for scripts that import no picture library."""
    file = where.root / "request.json"
    try:
        value = json_value(file, LARGEST_EXAMPLE)
    except (OSError, UnreadableFile):
        value = None
    if isinstance(value, dict) and "data" in value:
        return {"kind": "json", "value": value}
    for picture in sorted(where.folder.iterdir()):
        kind = mimetypes.guess_type(picture.name)[0] or ""
        if kind.startswith("image/") and picture.is_file():
            return {"kind": "form", "files": {"file": kind}, "fields": [], "names": {"file": picture.name}}
    return None if PICTURE_LIBRARIES & set(imported(where.tree)) else {"kind": "json", "value": EXAMPLE}
