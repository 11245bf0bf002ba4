"""Requests made of inputs, in the form of the server's dialect."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx

from panglot import inputs
from panglot.client.answers import ACCEPT
from panglot.client.attempts import Outgoing
from panglot.client.errors import CallError
from panglot.errors import StartError
from panglot.inputs.addresses import OPENAPI, server_address
from panglot.inputs.base import About, ClientRequest, Content, Given

NOTHING = object()
"""Stands for an input that was not given."""


class Address:
    """The address of a server: `http://host:port`, with a path or without, or `unix:` and the path of a socket."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        try:
            address = server_address(url)
        except StartError as error:
            raise ValueError(str(error)) from None
        self.socket, self.base, self._server = address.socket, address.base, address
        self.documents = [Outgoing("GET", path, OPENAPI) for path in address.documents]
        """Requests for the server's description, the most specific first; after a 404 the next is sent."""
        token = os.environ.get("PANGLOT_TOKEN", "") if token is None else token
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def described(self, document: Outgoing, response: httpx.Response, dialect: str, field: str) -> About:
        """The server's description in its document. Of a server that is not Panglot, only the given path is known."""
        if response.status_code == 401:
            message = f"{self.url} wants a token: give token=..., or set PANGLOT_TOKEN"
            raise CallError(message, status=401, code="unauthorized")
        known: dict[str, Any] = {}
        if response.status_code == 200:
            try:
                known = json.loads(response.content).get("x-panglot") or {}
            except (ValueError, AttributeError):
                known = {}
        path = self._server.path(document.path, str(known.get("path") or ""))
        return About(dialect or str(known.get("dialect", "")), path, {}, known.get("api") or {}, field)


READY = Outgoing("GET", "/v2/health/ready", {})
"""The answer is 503 until the script is loaded. Only then everything is known about it."""
NOT_FOUND = 404


def outgoing(about: About, given: Any, values: dict[str, Any]) -> Outgoing:
    """The request that sends an input. Raises ValueError for one that the package cannot take."""
    try:
        request = given if isinstance(given, ClientRequest) else inputs.make_request(about, as_given(given, values))
    except StartError as error:
        raise ValueError(str(error)) from None
    content_type, body = request.encoded()
    headers = {"content-type": content_type, "accept": ACCEPT, **request.headers}
    return Outgoing(request.method, request.path, headers, body)


def as_given(given: Any, values: dict[str, Any]) -> Given:
    """One input: a path, bytes or an open file is a file; everything else, and values by name, are JSON."""
    if isinstance(given, Given):
        return given
    if given is NOTHING:
        return Given("values", value=_with_files(values))
    if values:
        raise TypeError("give one input, or values by name, not both")
    given = _with_files(given)
    if isinstance(given, Path | Content):
        return Given(given.name or "bytes", file=given)
    return Given("input", value=given)


def _with_files(value: Any) -> Any:
    """The value, in which files in memory replace bytes and open files."""
    if isinstance(value, bytes | bytearray | memoryview):
        return Content("", bytes(value))
    if isinstance(value, dict):
        return {name: _with_files(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_with_files(entry) for entry in value]
    read = getattr(value, "read", None)
    if callable(read):
        return Content(os.path.basename(str(getattr(value, "name", ""))), read())
    return value
