"""Predictors take JSON with the field `input`; a file is a data URL in one of its fields."""

from __future__ import annotations

from typing import Any

from panglot.inputs.base import About, Base64, ClientRequest, Given, Json, media_type

FIELD = "image"
COMPARED = ("output", "status")
"""The keys that count where two answers are compared: ids and times are new with every prediction."""


def make_request(about: About, given: Given) -> ClientRequest:
    """A JSON value as the input; a file in the field that the user names, or in the first that takes files."""
    value: Any = given.value
    if given.file is not None:
        prefix = f"data:{media_type(given.file)};base64,"
        value = {about.field or _file_field(about) or FIELD: Base64(given.file, prefix)}
    is_whole = isinstance(value, dict) and isinstance(value.get("input"), dict)
    return ClientRequest(about.path, Json(value if is_whole else {"input": value}))


def _file_field(about: About) -> str:
    """The first input that is a file."""
    inputs = about.api.get("request_schema", {}).get("properties", {}).get("input", {}).get("properties", {})
    return next((name for name, schema in inputs.items() if schema.get("format") == "uri"), "")
