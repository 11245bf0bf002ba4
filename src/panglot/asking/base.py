"""One input, and the request that a dialect makes of it."""

from __future__ import annotations

import base64
import json
import mimetypes
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JSON = "application/json"
FORM = "multipart/form-data"
OCTETS = "application/octet-stream"


@dataclass(frozen=True)
class About:
    """What is known about a served package. `field` is the one the user names for files, empty when none."""

    dialect: str
    path: str
    """The first route of the dialect that reaches the script."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """`Package.options`."""
    api: Mapping[str, Any] = field(default_factory=dict)
    """What a ready worker says about its script; less, or nothing, while none runs."""
    field: str = ""


@dataclass(frozen=True)
class Given:
    """One input: a file that is no JSON, or else a JSON value."""

    name: str
    file: Path | None = None
    value: Any = None


@dataclass(frozen=True)
class Base64:
    """Stands in a JSON value for a file's bytes in base64."""

    file: Path
    prefix: str = ""


@dataclass(frozen=True)
class Json:
    """A JSON body; `value` may hold Base64 anywhere. `...` stands for an unknown value, in a line to show."""

    value: Any

    def encoded(self) -> tuple[str, bytes]:
        return JSON, json.dumps(self.value, default=_in_base64, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Whole:
    """A file as the whole body."""

    file: Path
    type: str = ""

    def encoded(self) -> tuple[str, bytes]:
        return self.type or media_type(self.file), self.file.read_bytes()


@dataclass(frozen=True)
class Form:
    """A multipart form: uploads by field, and text fields. A list of files is one field sent several times."""

    files: Mapping[str, Path | list[Path]]
    fields: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[str, bytes]:
        boundary = secrets.token_hex(16)
        parts = [self._text(boundary, name, text) for name, text in self.fields.items()]
        for name, files in self.files.items():
            for file in files if isinstance(files, list) else [files]:
                parts.append(self._upload(boundary, name, file))
        return f"{FORM}; boundary={boundary}", b"".join((*parts, f"--{boundary}--\r\n".encode()))

    @staticmethod
    def _text(boundary: str, name: str, text: str) -> bytes:
        return f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}\r\n'.encode()

    @staticmethod
    def _upload(boundary: str, name: str, file: Path) -> bytes:
        head = f'Content-Disposition: form-data; name="{_quoted(name)}"; filename="{_quoted(file.name)}"'
        start = f"--{boundary}\r\n{head}\r\nContent-Type: {media_type(file)}\r\n\r\n"
        return start.encode() + file.read_bytes() + b"\r\n"


@dataclass(frozen=True)
class Nothing:
    """No body at all."""

    def encoded(self) -> tuple[str, bytes]:
        return OCTETS, b""


Body = Json | Whole | Form | Nothing


@dataclass(frozen=True)
class Ask:
    """One HTTP request. `path` may carry a query; `headers` are besides the content's own."""

    path: str
    body: Body
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    streams: bool = False
    """Whether its answer comes in parts, which are to be shown as they come."""

    def encoded(self) -> tuple[str, bytes]:
        """Content type and body. Raises OSError when a file cannot be read."""
        return self.body.encoded()


def media_type(file: Path) -> str:
    return mimetypes.guess_type(file.name)[0] or OCTETS


def _quoted(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _in_base64(value: Any) -> str:
    if isinstance(value, Base64):
        return value.prefix + base64.b64encode(value.file.read_bytes()).decode()
    raise TypeError(f"JSON cannot hold a value of type {type(value).__name__}")
