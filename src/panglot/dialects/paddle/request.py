"""Paddle scripts take a picture, text or any file as the whole body; with several inputs, a form or JSON."""

from __future__ import annotations

from panglot.errors import StartError
from panglot.inputs.base import About, ClientRequest, Form, Given, Json, Whole, form_of


def make_request(about: About, given: Given) -> ClientRequest:
    """Make the request that sends one input to a Paddle script: JSON, a form with its field, or the whole file."""
    if given.file is None:
        return ClientRequest(about.path, form_of(given.value) or Json(given.value))
    if about.field:
        return ClientRequest(about.path, Form({about.field: given.file}))
    names = [str(field["name"]) for field in about.options.get("inputs", ())]
    if len(names) > 1:
        raise StartError(
            f"the script takes {' and '.join(names)}: one file is not enough",
            file=str(given.file),
            fix="give a JSON file that holds each of them in base64",
        )
    return ClientRequest(about.path, Whole(given.file))
