"""The request object of `@rawhttp` scripts: Flask's own in Flask's own context, or one that looks like it."""

from __future__ import annotations

import contextlib
import importlib
import sys
import urllib.parse
from importlib import util
from typing import Any, ContextManager, List, NamedTuple, Optional, Tuple

from panglot_worker.bodies import multipart
from panglot_worker.bodies.multipart import Limits
from panglot_worker.dialects.azureml.incoming import Seen
from panglot_worker.dialects.azureml.script import MODULE
from panglot_worker.line import wire

NO_CONTEXT = contextlib.nullcontext()


class RawRequest(NamedTuple):
    """A request object, and the context that the script runs in while it has it."""

    request: Any
    context: ContextManager[Any]


class FlaskRequests:
    """Requests of the Flask that the script's environment has; `flask.request` and `jsonify` work too."""

    def __init__(self) -> None:
        flask = importlib.import_module("flask")
        self._app = _app_kind(flask.Flask, importlib.import_module("werkzeug.routing").MapAdapter)(MODULE)
        self._app.add_url_rule("/score", "handle_score", methods=["GET", "POST", "OPTIONS"])
        self._seen: Optional[Seen] = None

    def make(self, seen: Seen, body: wire.Buffer) -> RawRequest:
        # Another head may have another method or path, and lead to another rule.
        if seen is not self._seen:
            self._seen, self._app.known_adapter = seen, None
        context = self._app.request_context(seen.environ(body))
        return RawRequest(context.request, context)


def _app_kind(flask: Any, map_adapter: Any) -> Any:
    """A Flask that looks for the rule of an address once, for all requests with the same head."""

    class KnownAdapter(map_adapter):  # type: ignore[misc]
        """Looks up the rule for an address once, and remembers it."""

        def __init__(self, adapter: Any) -> None:
            # Flask reads the attributes of an adapter. Its constructor would want arguments that are gone.
            self.__dict__.update(vars(adapter))
            self._adapter = adapter
            self._matches: Any = None

        def match(self, *arguments: Any, **options: Any) -> Any:
            if arguments or options != {"return_rule": True}:
                return self._adapter.match(*arguments, **options)
            if self._matches is None:
                self._matches = self._adapter.match(return_rule=True)
            # A copy: the request holds the values, and the script may change them.
            rule, values = self._matches
            return rule, dict(values)

    class App(flask):  # type: ignore[misc]
        known_adapter: Any = None
        """The adapter for the head of the current requests."""

        def create_url_adapter(self, request: Any) -> Any:
            if request is None:
                return super().create_url_adapter(request)
            if self.known_adapter is None:
                self.known_adapter = KnownAdapter(super().create_url_adapter(request))
            return self.known_adapter

    return App


class OwnRequests:
    """Requests that look like Flask's."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kind = importlib.import_module("azureml_inference_server_http.api._http").Request

    def make(self, seen: Seen, body: wire.Buffer) -> RawRequest:
        return RawRequest(self._kind(seen.environ(body), self._parse_form), NO_CONTEXT)

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
    """The maker of request objects for this interpreter."""
    if "flask" in sys.modules or util.find_spec("flask") is not None:
        return FlaskRequests()
    return OwnRequests(limits)
