"""Outputs as JSON has them: files become data URLs."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import io
import mimetypes
import os
import pathlib
from typing import Any, Dict

OCTETS = "application/octet-stream"


def plain(value: Any) -> Any:
    """A value of JSON, as far as this knows its type; what is left is for the encoder. Raises OSError."""
    if isinstance(value, (str, int, float, bool, type(None))) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, pathlib.PurePath):
        return data_url(value)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "__next__"):
        return [plain(inner) for inner in value]
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, io.IOBase):
        return _of_file(value)
    fields = _fields(value)
    return value if fields is None else plain(fields)


def _fields(value: Any) -> "Dict[str, Any] | None":
    """The fields of an object that has some."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    for name in ("model_dump", "dict"):
        dump = getattr(value, name, None)
        if callable(dump):
            fields = dump()
            return fields if isinstance(fields, dict) else None
    return None


def data_url(path: "pathlib.PurePath") -> str:
    """A file as a data URL. Raises OSError."""
    with open(str(path), "rb") as file:
        return written(file.read(), path.name)


def _of_file(file: Any) -> str:
    if file.seekable():
        file.seek(0)
    content = file.read()
    name = getattr(file, "name", "")
    body = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    return written(body, os.path.basename(name) if isinstance(name, str) else "")


def written(content: bytes, name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or OCTETS
    return "data:%s;base64,%s" % (kind, base64.b64encode(content).decode("ascii"))
