"""A request that can be sent, made from the OpenAPI document of a served package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot.inputs.base import FORM, JSON, ClientRequest, Form, Json, Whole, media_type
from panglot.inputs.samples import of_type


@dataclass(frozen=True)
class Example:
    """A request, and a name for it. `guessed`: its files were chosen by type, and not named by the script's author."""

    request: ClientRequest
    about: str
    guessed: bool = False


def example_of(document: dict[str, Any], folder: Path) -> Example | None:
    """The first request the document allows to make, with files from the package's folder; None without one."""
    for declared, methods in document.get("paths", {}).items():
        operation = methods.get("post", {})
        if "inference" in operation.get("tags", ()):
            # No request can be sent to a path with free segments: the document has one with the model's name in it.
            path = (document.get("x-panglot") or {}).get("path") or declared if "{" in declared else declared
            content = operation.get("requestBody", {}).get("content", {})
            example = _json(path, content) or _form(path, content, folder) or _file(path, content, folder)
            if example is not None:
                return example
    return None


def _json(path: str, content: dict[str, Any]) -> Example | None:
    media = content.get(JSON, {})
    return Example(ClientRequest(path, Json(media["example"])), "the script's example") if "example" in media else None


def _form(path: str, content: dict[str, Any], folder: Path) -> Example | None:
    media = content.get(FORM, {})
    schema = media.get("schema", {})
    fields = {name: about for name, about in schema.get("properties", {}).items() if about.get("format") == "binary"}
    if not fields or set(schema.get("required", ())) - set(fields):
        return None
    files: dict[str, Path | list[Path]] = {}
    for name in fields:
        file = of_type(folder, media.get("encoding", {}).get(name, {}).get("contentType", ""))
        if file is None:
            return None
        files[name] = file
    names = " and ".join(sorted({file.name for file in files.values() if isinstance(file, Path)}))
    return Example(ClientRequest(path, Form(files)), names, guessed=True)


def _file(path: str, content: dict[str, Any], folder: Path) -> Example | None:
    for content_type, media in content.items():
        if media.get("schema", {}).get("format") == "binary":
            file = of_type(folder, content_type)
            if file is not None:
                return Example(ClientRequest(path, Whole(file, media_type(file))), file.name, guessed=True)
    return None
