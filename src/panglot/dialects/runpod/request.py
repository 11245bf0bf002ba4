"""Workers take JSON with the field `input`; the platform's client adds it, and so do the tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from panglot.inputs.base import About, Base64, ClientRequest, Given, Json

FIELD = "file"
COMPARED = ("output", "status")
"""The keys that count where two answers are compared: ids and times are new with every job."""


def make_request(about: About, given: Given) -> ClientRequest:
    """A JSON value as the input; a file as base64 in the field that the user names, or that the example has."""
    value: Any = given.value
    if given.file is not None:
        value = {about.field or _only_text(about) or FIELD: Base64(given.file)}
    is_whole = isinstance(value, dict) and bool(value.get("input"))
    return ClientRequest(about.path, Json(value if is_whole else {"input": value}))


def example(about: About, folder: Path) -> ClientRequest | None:
    """The package's own file for tests, which is known before the script runs."""
    shown = about.options.get("example")
    return ClientRequest(about.path, Json(shown["value"])) if shown else None


def _only_text(about: About) -> str:
    """The only field of the example's input that holds a text."""
    shown = (about.api.get("example") or {}).get("value")
    inner = shown.get("input") if isinstance(shown, dict) else None
    texts = [name for name, value in inner.items() if isinstance(value, str)] if isinstance(inner, dict) else []
    return texts[0] if len(texts) == 1 else ""
