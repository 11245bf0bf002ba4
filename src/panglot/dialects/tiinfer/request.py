"""tiinfer scripts take JSON alone; a file goes in base64 into the list `images`, as in the platform's samples."""

from __future__ import annotations

from typing import Any

from panglot.inputs.base import About, Base64, ClientRequest, Given, Json

FIELD = "images"


def make_request(about: About, given: Given) -> ClientRequest:
    """A JSON value unchanged; a file in the field that has files in the package's example, else in `images`."""
    if given.file is None:
        return ClientRequest(about.path, Json(given.value))
    shown = (about.api.get("example") or {}).get("value")
    shown = shown if isinstance(shown, dict) else {}
    name = about.field or _field(shown)
    file = Base64(given.file)
    # The published example says whether one file stands alone or in a list.
    alone = isinstance(shown.get(name), str)
    return ClientRequest(about.path, Json({name: file if alone else [file]}))


def _field(shown: dict[str, Any]) -> str:
    """The field with files in the package's example: `images`, or the only field with a text or a list of texts."""
    if FIELD in shown or not shown:
        return FIELD
    texts = [name for name, value in shown.items() if isinstance(value, str) or _is_texts(value)]
    return texts[0] if len(texts) == 1 else FIELD


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, str) for entry in value)
