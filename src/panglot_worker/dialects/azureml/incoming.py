"""A request as the platform's server sees it: its headers, and the ids that go back with the answer."""

from __future__ import annotations

import io
import sys
from typing import Any, Dict, List, Tuple

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


def id_lines(head: wire.Head) -> List[str]:
    """The header lines that tell a client which request an answer is for. Raises Refused for an id that is too long."""
    request_id = head.request_id.decode("latin-1")
    raw = head.headers
    if b"x-ms-" not in raw and b"x-request-id:" not in raw and b"traceid:" not in raw:
        return ["x-ms-request-id: " + request_id]
    headers = headers_of(head)
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


def environ_of(head: wire.Head, body: wire.Buffer) -> Dict[str, Any]:
    """The request as WSGI has it, for request objects."""
    headers = headers_of(head)
    if head.form:
        # It came with tensors, in a body of another type and length than the script gets.
        headers["Content-Type"], headers["Content-Length"] = head.content_type.decode("latin-1"), str(len(body))
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
        "wsgi.input": io.BytesIO(bytes(body)),
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
