"""Outputs as JSON has them: files become data URLs, or addresses that they were uploaded to."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import io
import mimetypes
import os
import pathlib
from typing import Any, Callable, Dict

from panglot_worker.errors import EncodeError

OCTETS = "application/octet-stream"
PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types that JSON has, exactly."""

Write = Callable[[bytes, str], str]
"""Makes the text that stands for a file, from its content and its name."""


class BadFile(EncodeError):
    """A file of an output that cannot be read or uploaded. No code of the script is at fault where it is noticed, so
    the log has one line instead of a traceback."""

    def __str__(self) -> str:
        return self.reason


def written(content: bytes, name: str) -> str:
    """A file as a data URL."""
    return data_url(content, kind_of(name))


def data_url(content: bytes, kind: str) -> str:
    return "data:%s;base64,%s" % (kind, base64.b64encode(content).decode("ascii"))


def kind_of(name: str) -> str:
    return mimetypes.guess_type(name)[0] or OCTETS


def plain(value: Any, write: Write = written) -> Any:
    """A value of JSON, for the types that are known here; other values are left to the encoder. `write` makes the text
    for each file. Raises BadFile, and what `write` raises."""
    if isinstance(value, (str, int, float, bool, type(None))) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, pathlib.PurePath):
        return _of_path(value, write)
    if isinstance(value, enum.Enum):
        return plain(value.value, write)
    if isinstance(value, dict):
        return {name: plain(inner, write) for name, inner in value.items()}
    # Before those that are iterated: a file is an iterator of its lines.
    if isinstance(value, io.IOBase) or (hasattr(value, "read") and hasattr(value, "seekable")):
        return _of_file(value, write)
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "__next__"):
        if type(value) is list and PLAIN.issuperset(map(type, value)):
            # Lists may be long.
            return value
        return [plain(inner, write) for inner in value]
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    fields = _fields(value)
    return value if fields is None else plain(fields, write)


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


def _of_path(path: "pathlib.PurePath", write: Write) -> str:
    try:
        with open(str(path), "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadFile("the file %s cannot be read: %s" % (path, error.strerror or error)) from None
    return write(content, path.name)


def _of_file(file: Any, write: Write) -> str:
    name = getattr(file, "name", "")
    try:
        if file.seekable():
            file.seek(0)
        content = file.read()
    # ValueError: it is closed.
    except (OSError, ValueError) as error:
        raise BadFile("the file %s cannot be read: %s" % (name, error)) from None
    body = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    return write(body, os.path.basename(name) if isinstance(name, str) else "")
