"""One input, and the request that a dialect makes of it."""

from __future__ import annotations

import base64
import json
import mimetypes
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JSON = "application/json"
FORM = "multipart/form-data"
OCTETS = "application/octet-stream"

SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"%PDF-": "application/pdf",
}
"""The beginnings of files, with their types: for bytes without a name."""


@dataclass(frozen=True)
class About:
    """Facts about a served package. `field` is the field for files that the user names, or empty."""

    dialect: str
    path: str
    """The first route of the dialect that reaches the script."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """`Package.options`."""
    api: Mapping[str, Any] = field(default_factory=dict)
    """A ready worker's description of its script; less, or nothing, while no worker runs."""
    field: str = ""


@dataclass(frozen=True)
class Content:
    """A file in memory. Its name may be empty."""

    name: str
    data: bytes = field(repr=False)

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    def read_bytes(self) -> bytes:
        return self.data


File = Path | Content


@dataclass(frozen=True)
class Given:
    """One input: a file that is no JSON, or else a JSON value, in which a File may stand for its bytes."""

    name: str
    file: File | None = None
    value: Any = None


@dataclass(frozen=True)
class Base64:
    """Stands in a JSON value for a file's bytes in base64."""

    file: File
    prefix: str = ""


@dataclass(frozen=True)
class Json:
    """A JSON body. `value` may have Base64 and files anywhere in it. `...` stands for an unknown value."""

    value: Any

    def encoded(self) -> tuple[str, bytes]:
        return JSON, json.dumps(self.value, default=_in_base64, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Whole:
    """A file as the whole body."""

    file: File
    type: str = ""

    def encoded(self) -> tuple[str, bytes]:
        return self.type or media_type(self.file), self.file.read_bytes()


@dataclass(frozen=True)
class Form:
    """A multipart form: uploads by field, and text fields. A list of files is one field sent several times."""

    files: Mapping[str, File | Sequence[File]]
    fields: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[str, bytes]:
        boundary = secrets.token_hex(16)
        parts = [self._text(boundary, name, text) for name, text in self.fields.items()]
        for name, files in self.files.items():
            several = [files] if isinstance(files, File) else files
            parts += [self._upload(boundary, name, file) for file in several]
        return f"{FORM}; boundary={boundary}", b"".join((*parts, f"--{boundary}--\r\n".encode()))

    @staticmethod
    def _text(boundary: str, name: str, text: str) -> bytes:
        return f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}\r\n'.encode()

    @staticmethod
    def _upload(boundary: str, name: str, file: File) -> bytes:
        head = f'Content-Disposition: form-data; name="{_quoted(name)}"; filename="{_quoted(file.name or name)}"'
        start = f"--{boundary}\r\n{head}\r\nContent-Type: {media_type(file)}\r\n\r\n"
        return start.encode() + file.read_bytes() + b"\r\n"


@dataclass(frozen=True)
class Nothing:
    """No body at all."""

    def encoded(self) -> tuple[str, bytes]:
        return OCTETS, b""


@dataclass(frozen=True)
class Zeros:
    """A body of zeros: an array that can be sent without any file."""

    size: int
    type: str = OCTETS

    def encoded(self) -> tuple[str, bytes]:
        return self.type, bytes(self.size)


Body = Json | Whole | Form | Nothing | Zeros


@dataclass(frozen=True)
class ClientRequest:
    """One HTTP request. `path` may carry a query; `headers` are besides the content's own."""

    path: str
    body: Body
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    streams: bool = False
    """Whether its answer comes in parts, each of which is shown at once."""

    def encoded(self) -> tuple[str, bytes]:
        """Content type and body. Raises OSError when a file cannot be read."""
        return self.body.encoded()


def form_of(value: Any) -> Form | None:
    """The form for an object that has files among its values; None for any other value.

    A text goes into its field as it is, every other value as JSON.
    """
    if not isinstance(value, dict):
        return None
    files = {str(name): entry for name, entry in value.items() if _is_upload(entry)}
    if not files:
        return None
    texts = {str(name): entry if isinstance(entry, str) else json.dumps(entry) for name, entry in value.items()
             if not _is_upload(entry)}  # fmt: skip
    return Form(files, texts)


def _is_upload(value: Any) -> bool:
    """Whether it is a file, or a list of nothing but files."""
    several = isinstance(value, list) and bool(value) and all(isinstance(entry, File) for entry in value)
    return several or isinstance(value, File)


def media_type(file: File) -> str:
    """The media type by the file's name; for bytes without a name, by their first bytes."""
    kind = mimetypes.guess_type(file.name)[0]
    if kind is None and isinstance(file, Content):
        kind = next((known for start, known in SIGNATURES.items() if file.data.startswith(start)), None)
    return kind or OCTETS


def _quoted(text: str) -> str:
    # As browsers encode names in a form: the three characters that would end a name or a line.
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _in_base64(value: Any) -> str:
    if isinstance(value, Base64):
        return value.prefix + base64.b64encode(value.file.read_bytes()).decode()
    if isinstance(value, File):
        return base64.b64encode(value.read_bytes()).decode()
    raise TypeError(f"JSON cannot hold a value of type {type(value).__name__}")
