"""evals scripts take JSON of the platform, a list of it as a batch, a form with files, or a file for a data URI."""

from __future__ import annotations

from typing import Any

from panglot.errors import StartError
from panglot.inputs.base import About, Base64, ClientRequest, File, Given, Json, form_of

BATCH = "/v1/batch"
PREFIX = "data:application/octet-stream;base64,"


def make_request(about: About, given: Given) -> ClientRequest:
    """The request for an input. Raises StartError for JSON that is no request of the platform."""
    if given.file is not None:
        return ClientRequest(about.path, Json({"data": {"uri": Base64(given.file, PREFIX)}}))
    if given.value is ... or _is_request(given.value):
        return ClientRequest(about.path, Json(_with_uri(given.value)))
    if isinstance(given.value, list) and all(_is_request(entry) for entry in given.value):
        return ClientRequest(BATCH, Json([_with_uri(entry) for entry in given.value]))
    form = form_of(given.value)
    if form is not None:
        return ClientRequest(about.path, form)
    raise StartError(
        f"{given.name}: this is no request of evals",
        fix='write {"data": {"uri": "..."}, "params": {}}, or give the file that is to be looked at',
    )


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and "data" in value


def _with_uri(value: Any) -> Any:
    """The request with a data URI where a file stands for it."""
    data = value["data"] if _is_request(value) else None
    if not isinstance(data, dict) or not isinstance(data.get("uri"), File):
        return value
    return {**value, "data": {**data, "uri": Base64(data["uri"], PREFIX)}}
