"""A request as the platform's server sees it: its headers, and the ids that go back with the answer."""

from __future__ import annotations

import io
import sys
from typing import Any, Dict, List, Optional, Tuple

from panglot_worker.dialects.base import Request
from panglot_worker.errors import ClientError
from panglot_worker.line import wire

LONGEST_ID = 100


class Refused(ClientError):
    """The platform's own refusal of a request: its status and its sentence."""


def headers_of(head: wire.Head) -> Dict[str, str]:
    """The headers by the names that scripts know: in title case, of several with one name all values with commas."""
    headers: Dict[str, str] = {}
    for line in head.headers.decode("latin-1").split("\n"):
        name, colon, value = line.partition(":")
        # Underscores would make two names one; the platform's server drops such headers too.
        if colon and "_" not in name:
            name = name.title()
            headers[name] = headers[name] + "," + value if name in headers else value
    return headers


class Seen:
    """The head of requests that differ in their ids alone."""

    __slots__ = ("_environ", "_headers", "content_type", "head", "with_ids")

    def __init__(self, head: wire.Head) -> None:
        self.head = head
        self.content_type = head.content_type.decode("latin-1")
        raw = head.headers
        self.with_ids = b"x-ms-" in raw or b"x-request-id:" in raw or b"traceid:" in raw
        """Whether the client has sent ids of its own."""
        self._headers: Optional[Dict[str, str]] = None
        self._environ: Optional[Dict[str, Any]] = None

    @property
    def headers(self) -> Dict[str, str]:
        """A copy that the script may change."""
        if self._headers is None:
            self._headers = headers_of(self.head)
        return self._headers.copy()

    def environ(self, body: wire.Buffer) -> Dict[str, Any]:
        """The request as WSGI has it, for request objects."""
        if self._environ is None:
            self._environ = _environ_of(self.head, self.headers, len(body))
        # A copy for each request: Flask and scripts put values of their own into it.
        return {**self._environ, "wsgi.input": io.BytesIO(body)}


class Heads:
    """Reads heads of requests. A client sends the same head again and again, so that the last one is kept."""

    def __init__(self) -> None:
        self._last: Optional[Seen] = None
        self._rest = b""

    def of(self, request: Request) -> Tuple[Seen, List[str]]:
        """The head of a request, and the header lines with its ids for the answer. Raises Refused."""
        request_id, _, rest = request.raw_head.partition(b"\0")
        seen = self._last
        if rest != self._rest or seen is None:
            seen = Seen(request.head)
            # Not kept with tensors: `environ` has the length of the body, which differs while the head does not.
            if not request.has_tensors:
                self._last, self._rest = seen, rest
        if seen.with_ids:
            return seen, id_lines(seen, request_id.decode("latin-1"))
        return seen, ["x-ms-request-id: " + request_id.decode("latin-1")]


def id_lines(seen: Seen, request_id: str) -> List[str]:
    """The header lines that tell a client which request an answer is for. Raises Refused for an id that is too long."""
    headers = seen.headers
    if len(headers.get("X-Request-Id", "")) > LONGEST_ID:
        raise Refused("x-request-id must not exceed %d characters" % LONGEST_ID, 431)
    legacy, client = headers.get("X-Ms-Request-Id", ""), headers.get("X-Ms-Client-Request-Id", "")
    client = client or legacy
    legacy = legacy or client or request_id
    if len(legacy) > LONGEST_ID or len(client) > LONGEST_ID:
        limit = "must not exceed %d characters" % LONGEST_ID
        raise Refused("x-ms-request-id and x-ms-client-request-id " + limit, 431)
    lines = ["x-ms-request-id: " + legacy]
    if client:
        lines.append("x-ms-client-request-id: " + client)
    if "Traceid" in headers:
        lines.append("TraceId: " + headers["Traceid"])
    return lines


def _environ_of(head: wire.Head, headers: Dict[str, str], length: int) -> Dict[str, Any]:
    """The request as WSGI has it, all but its body."""
    if head.form:
        # It came with tensors, in a body of another type and length than the script gets.
        headers["Content-Type"], headers["Content-Length"] = head.content_type.decode("latin-1"), str(length)
    host, _, port = headers.get("Host", "").partition(":")
    environ: Dict[str, Any] = {
        "REQUEST_METHOD": head.method.decode("ascii"),
        "SCRIPT_NAME": "",
        "PATH_INFO": head.path.decode("latin-1"),
        "QUERY_STRING": head.query.decode("latin-1"),
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": head.client.decode("latin-1"),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + key] = value
    return environ


def media_of(content_type: str) -> Tuple[str, str]:
    """The media type in lower case, and its parameters as they are written."""
    media, _, parameters = content_type.partition(";")
    return media.strip().lower(), parameters
