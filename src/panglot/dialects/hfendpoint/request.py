"""Handlers take JSON with `inputs`, or a picture or sound as the whole body."""

from __future__ import annotations

from typing import Any

from panglot.inputs.base import About, Base64, ClientRequest, File, Given, Json, Whole, media_type


def make_request(about: About, given: Given) -> ClientRequest:
    """A picture or sound unchanged, another file in base64, and a JSON value that is no request as `inputs`."""
    if given.file is not None:
        kind = media_type(given.file)
        if about.field:
            return ClientRequest(about.path, Json({about.field: Base64(given.file)}))
        if kind.startswith(("image/", "audio/")):
            return ClientRequest(about.path, Whole(given.file, kind))
        return ClientRequest(about.path, Json({"inputs": Base64(given.file)}))
    if given.value is ... or _is_request(given.value):
        return ClientRequest(about.path, Json(given.value))
    return ClientRequest(about.path, Json({"inputs": given.value}))


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and not isinstance(value, File) and bool({"inputs", "instances"} & set(value))
