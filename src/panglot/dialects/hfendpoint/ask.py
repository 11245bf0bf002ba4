"""Handlers take JSON with `inputs`, or a picture or sound as the whole body."""

from __future__ import annotations

from typing import Any

from panglot.inputs.base import About, Ask, Base64, File, Given, Json, Whole, media_type


def ask(about: About, given: Given) -> Ask:
    """A picture or sound as it is, another file in base64, and any JSON value that is no request as the `inputs`."""
    if given.file is not None:
        kind = media_type(given.file)
        if about.field:
            return Ask(about.path, Json({about.field: Base64(given.file)}))
        if kind.startswith(("image/", "audio/")):
            return Ask(about.path, Whole(given.file, kind))
        return Ask(about.path, Json({"inputs": Base64(given.file)}))
    if given.value is ... or _is_request(given.value):
        return Ask(about.path, Json(given.value))
    return Ask(about.path, Json({"inputs": given.value}))


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and not isinstance(value, File) and bool({"inputs", "instances"} & set(value))
