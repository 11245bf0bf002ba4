"""ModelArts scripts get JSON, or a form: config.json names its field for files."""

from __future__ import annotations

from typing import Any

from panglot.errors import StartError
from panglot.inputs.base import FORM, About, Base64, ClientRequest, Form, Given, Json, form_of

FIELD = "images"
"""The file field of the platform's own samples, for packages without one in their config.json."""


def make_request(about: About, given: Given) -> ClientRequest:
    """The request for an input: a file goes into a form, or in base64 into JSON where the package takes that alone.

    Raises StartError for a file where that JSON has no field for it.
    """
    takes_forms = FORM in about.api.get("request_types", [FORM])
    if given.file is None:
        return ClientRequest(about.path, (form_of(given.value) if takes_forms else None) or Json(given.value))
    if takes_forms:
        return ClientRequest(about.path, Form({about.field or _upload(about.api): given.file}))
    name = about.field or _text(about.api)
    if not name:
        raise StartError(
            "this package takes JSON, and its config.json names no field for a file",
            file=str(given.file),
            fix="give JSON, or name the field with --field",
        )
    return ClientRequest(about.path, Json({name: Base64(given.file)}))


def _upload(api: Any) -> str:
    files = list((api.get("example") or {}).get("files", {}))
    return files[0] if files else FIELD


def _text(api: Any) -> str:
    """The only text field of the request: a file in base64 must be meant for it. Empty where there are several."""
    properties = api.get("request_schema", {}).get("properties", {})
    texts = [name for name, about in properties.items() if about.get("type") == "string"]
    return texts[0] if len(texts) == 1 else ""
