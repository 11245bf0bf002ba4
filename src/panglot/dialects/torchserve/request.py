"""Handlers take JSON, or a file as the whole body; where the user names a field, a file as that field of a form."""

from __future__ import annotations

from panglot.inputs.base import About, ClientRequest, Content, Form, Given, Json, Whole


def make_request(about: About, given: Given) -> ClientRequest:
    """A file as `curl -T` sends it, or as a field; a text as text; every other value as JSON."""
    if given.file is not None:
        if about.field:
            return ClientRequest(about.path, Form({about.field: given.file}))
        return ClientRequest(about.path, Whole(given.file))
    if isinstance(given.value, str):
        return ClientRequest(about.path, Whole(Content("text.txt", given.value.encode()), "text/plain"))
    return ClientRequest(about.path, Json(given.value))
