"""azureml scripts take JSON; raw HTTP scripts take a file as it is, or a form where a value holds files."""

from __future__ import annotations

from panglot.inputs.base import JSON, About, Base64, ClientRequest, Form, Given, Json, Whole, form_of

FIELD = "data"
"""The name of the input in the platform's samples."""


def make_request(about: About, given: Given) -> ClientRequest:
    """JSON unchanged; a file as the whole body for a raw script, else in base64 in the field that holds a text."""
    is_raw = about.options.get("raw") or (about.api and JSON not in about.api.get("request_types", ()))
    if given.file is None:
        form = form_of(given.value) if is_raw else None
        return ClientRequest(about.path, form or Json(given.value))
    if is_raw:
        body = Form({about.field: given.file}) if about.field else Whole(given.file)
        return ClientRequest(about.path, body)
    shown = (about.api.get("example") or {}).get("value")
    texts = [name for name, value in shown.items() if isinstance(value, str)] if isinstance(shown, dict) else []
    name = about.field or (texts[0] if len(texts) == 1 else FIELD)
    return ClientRequest(about.path, Json({name: Base64(given.file)}))
