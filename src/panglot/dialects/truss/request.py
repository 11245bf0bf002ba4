"""Trusses take JSON; a file is sent as base64 in a field of it."""

from __future__ import annotations

from panglot.inputs.base import About, Base64, ClientRequest, Given, Json

FIELD = "data"


def make_request(about: About, given: Given) -> ClientRequest:
    """A JSON value as it is; a file in the field that the user names, or that the example has a text in."""
    if given.file is None:
        return ClientRequest(about.path, Json(given.value))
    shown = (about.api.get("example") or {}).get("value")
    texts = [name for name, value in shown.items() if isinstance(value, str)] if isinstance(shown, dict) else []
    name = about.field or (texts[0] if len(texts) == 1 else FIELD)
    return ClientRequest(about.path, Json({name: Base64(given.file)}))
