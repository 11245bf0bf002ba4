"""A server that runs already, for the tools: its description, and one request at a time."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import time
from typing import Any

from panglot.errors import StartError
from panglot.inputs.addresses import OPENAPI, ServerAddress, server_address
from panglot.inputs.base import About, ClientRequest
from panglot.terminal.text import brief
from panglot.tools.run.offline import OfflineReply

PATIENCE = 120.0
LARGEST_PAGE = 64 << 20
NOT_FOUND = 404


class RunningServer:
    """One server. The token is the caller's PANGLOT_TOKEN. Raises StartError when the server cannot be reached."""

    def __init__(self, url: str, dialect: str = "", field: str = "") -> None:
        self.url = url
        self.address = server_address(url)
        self.dialect = dialect
        self.field = field
        self.token = os.environ.get("PANGLOT_TOKEN", "")

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def describe(self) -> About:
        """The server's description of itself. Of a server that is not Panglot, only the given path is known."""
        for document in self.address.documents:
            status, _, body = self._send("GET", document, OPENAPI, b"", LARGEST_PAGE)
            if status != NOT_FOUND:
                break
        known: dict[str, Any] = {}
        if status == 200:
            with contextlib.suppress(ValueError, AttributeError, RecursionError, TypeError):
                known = dict(json.loads(body).get("x-panglot") or {})
        if status == 401:
            raise StartError(f"{self.address} wants a token", fix="set PANGLOT_TOKEN")
        path = self.address.path(document, str(known.get("path") or ""))
        dialect = self.dialect or str(known.get("dialect", ""))
        return About(dialect, path, {}, known.get("api") or {}, self.field)

    def send(self, request: ClientRequest, accept: str) -> OfflineReply:
        """Send one request. Failures of the script are replies; raises StartError when there is no answer."""
        content_type, body = request.encoded()
        headers = {"Content-Type": content_type, "Accept": accept, **request.headers}
        began = time.perf_counter()
        status, answer_type, answer = self._send(request.method, request.path, headers, body)
        taken = int((time.perf_counter() - began) * 1e6)
        error = "" if status < 400 else f"status {status}: {answer[:200].decode(errors='replace')}"
        return OfflineReply(status, answer_type, answer, total_us=taken, error=error)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        status, _, body = self._send("GET", path, {}, b"", LARGEST_PAGE)
        return status, body.decode(errors="replace")

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes, most: int = 0
    ) -> tuple[int, str, bytes]:
        """Status, type and content of an answer, which may have `most` bytes; 0: any number. Raises StartError."""
        try:
            with contextlib.closing(_connection(self.address)) as connection:
                connection.request(method, path, body or None, {**headers, **self.headers()})
                response = connection.getresponse()
                # One byte more than allowed: so an answer that is too long is noticed.
                content = response.read(most + 1) if most else response.read()
                if most and len(content) > most:
                    raise StartError(f"{self.address} answers {path} with more than {most} bytes")
                return response.status, response.getheader("Content-Type") or "", content
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = brief(getattr(error, "strerror", "") or str(error) or type(error).__name__, 200)
            raise StartError(f"{self.address} does not answer: {why}", fix="is the server running?") from None


def _connection(address: ServerAddress) -> http.client.HTTPConnection:
    """A connection to the server, which opens with the first request; on a Unix socket it is open. Raises OSError."""
    if address.secure:
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(address.host, address.port, timeout=PATIENCE, context=context)
    connection = http.client.HTTPConnection(address.host, address.port or None, timeout=PATIENCE)
    if address.socket:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(PATIENCE)
        connection.sock.connect(address.socket)
    return connection
