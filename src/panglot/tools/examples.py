"""A request to send, put together from the OpenAPI document of a served package."""

from __future__ import annotations

import fnmatch
import json
import mimetypes
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JSON, FORM = "application/json", "multipart/form-data"
LARGEST = 8 * 1024 * 1024
"""Files beyond this size are not taken as samples."""


@dataclass(frozen=True)
class Example:
    """A body for POST `path`. `guessed`: files were chosen by type, not named by the script's author."""

    path: str
    content_type: str
    body: bytes
    about: str
    guessed: bool = False


def example_of(document: dict[str, Any], folder: Path) -> Example | None:
    """The first request the document allows to make, with files from the package's folder; None without one."""
    for path, methods in document.get("paths", {}).items():
        operation = methods.get("post", {})
        if "inference" in operation.get("tags", ()):
            content = operation.get("requestBody", {}).get("content", {})
            example = _json(path, content) or _form(path, content, folder) or _file(path, content, folder)
            if example is not None:
                return example
    return None


def _json(path: str, content: dict[str, Any]) -> Example | None:
    media = content.get(JSON, {})
    if "example" not in media:
        return None
    return Example(path, JSON, json.dumps(media["example"]).encode(), "the script's example")


def _form(path: str, content: dict[str, Any], folder: Path) -> Example | None:
    media = content.get(FORM, {})
    schema = media.get("schema", {})
    fields = {name: about for name, about in schema.get("properties", {}).items() if about.get("format") == "binary"}
    if not fields or set(schema.get("required", ())) - set(fields):
        return None
    files = {}
    for name in fields:
        sample = _sample(folder, media.get("encoding", {}).get(name, {}).get("contentType", ""))
        if sample is None:
            return None
        files[name] = sample
    boundary = secrets.token_hex(16)
    names = " and ".join(sorted({file.name for file in files.values()}))
    return Example(path, f"{FORM}; boundary={boundary}", _multipart(files, boundary), names, guessed=True)


def _multipart(files: dict[str, Path], boundary: str) -> bytes:
    parts = []
    for name, file in files.items():
        quoted = [text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A") for text in (name, file.name)]
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{quoted[0]}"; filename="{quoted[1]}"\r\n'
            f"Content-Type: {_type(file)}\r\n\r\n".encode()
            + file.read_bytes()
            + b"\r\n"
        )
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def _file(path: str, content: dict[str, Any], folder: Path) -> Example | None:
    for content_type, media in content.items():
        if media.get("schema", {}).get("format") == "binary":
            sample = _sample(folder, content_type)
            if sample is not None:
                return Example(path, _type(sample), sample.read_bytes(), sample.name, guessed=True)
    return None


def _sample(folder: Path, content_type: str) -> Path | None:
    """The first file of a package that has this type, such as image/png or image/*."""
    if not content_type or content_type in ("*/*", "application/octet-stream"):
        return None
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.stat().st_size <= LARGEST and fnmatch.fnmatch(_type(file), content_type):
            return file
    return None


def _type(file: Path) -> str:
    return mimetypes.guess_type(file.name)[0] or "application/octet-stream"
