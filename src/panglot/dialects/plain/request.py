"""Plain scripts take JSON, a form, or any file as the whole body; their own example says which."""

from __future__ import annotations

from panglot.inputs.base import About, ClientRequest, Form, Given, Json, Whole, form_of

HOW_TO = "define example() in the script, or put a request.json beside it"


def make_request(about: About, given: Given) -> ClientRequest:
    """The request for an input: JSON, a form with the file in it, or the file as the body."""
    if given.file is None:
        return ClientRequest(about.path, form_of(given.value) or Json(given.value))
    example = about.api.get("example") or {}
    uploads = list(example.get("files", {})) if example.get("kind") == "form" else []
    name = about.field or (uploads[0] if uploads else "")
    return ClientRequest(about.path, Form({name: given.file}) if name else Whole(given.file))
