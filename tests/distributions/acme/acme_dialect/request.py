"""How an input becomes a question: JSON as it is, a file as its text."""

from __future__ import annotations

from panglot.inputs.base import About, ClientRequest, Given, Json


def make_request(about: About, given: Given) -> ClientRequest:
    value = given.value if given.file is None else {"question": given.file.read_text()}
    return ClientRequest(about.path, Json(value))
