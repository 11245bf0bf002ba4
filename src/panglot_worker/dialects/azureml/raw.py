"""The request object of `@rawhttp` scripts: Flask's own in Flask's own context, or one that looks like it."""

from __future__ import annotations

import contextlib
import importlib
import sys
import urllib.parse
from importlib import util
from typing import Any, ContextManager, List, NamedTuple, Tuple

from panglot_worker.bodies import multipart
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.azureml.incoming import environ_of
from panglot_worker.dialects.azureml.script import MODULE
from panglot_worker.line import wire


class RawRequest(NamedTuple):
    """A request object, and the context that the script runs in while it has it."""

    request: Any
    context: ContextManager[Any]


class FlaskRequests:
    """Requests of the Flask that the script's environment has; `flask.request` and `jsonify` work too."""

    def __init__(self) -> None:
        flask = importlib.import_module("flask")
        self._app = flask.Flask(MODULE)
        self._app.add_url_rule("/score", "handle_score", methods=["GET", "POST", "OPTIONS"])

    def make(self, head: wire.Head, body: wire.Buffer) -> RawRequest:
        context = self._app.request_context(environ_of(head, body))
        return RawRequest(context.request, context)


class OwnRequests:
    """Requests that look like Flask's."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kind = importlib.import_module("azureml_inference_server_http.api._http").Request

    def make(self, head: wire.Head, body: wire.Buffer) -> RawRequest:
        return RawRequest(self._kind(environ_of(head, body), self._parse_form), contextlib.nullcontext())

    def _parse_form(self, content_type: str, body: bytes) -> Tuple[List[Any], List[Any]]:
        """Fields, and files as name, file name, type and bytes. Raises ClientError for a malformed form."""
        if not content_type.lower().startswith("multipart/"):
            return urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True), []
        parts = multipart.parse(content_type, body, self._limits)
        fields = [(part.name, str(part.data, "utf-8", "replace")) for part in parts if part.filename is None]
        files = [
            (part.name, part.filename, part.content_type, bytes(part.data))
            for part in parts
            if part.filename is not None
        ]
        return fields, files


def requests_for(limits: Limits) -> Any:
    """What makes request objects in this interpreter."""
    if "flask" in sys.modules or util.find_spec("flask") is not None:
        return FlaskRequests()
    return OwnRequests(limits)
