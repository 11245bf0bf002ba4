"""Processors get the body unchanged: a file's bytes, a text, or JSON."""

from __future__ import annotations

from panglot.inputs.base import About, ClientRequest, Content, Given, Json, Whole

SERVICE = "/api/predict/{service}"


def make_request(about: About, given: Given) -> ClientRequest:
    """A file, and a text without its quotes, as the whole body; any other value as JSON."""
    path = SERVICE.replace("{service}", str(about.options.get("service") or "service"))
    if given.file is not None:
        return ClientRequest(path, Whole(given.file))
    if isinstance(given.value, str):
        return ClientRequest(path, Whole(Content("text.txt", given.value.encode())))
    return ClientRequest(path, Json(given.value))
