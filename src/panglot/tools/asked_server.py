"""A server that runs already, as the tools ask it: what it serves, and one request at a time."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from panglot.asking.base import About, Ask
from panglot.errors import StartError
from panglot.tools.offline import OfflineReply

PATIENCE = 120.0


def is_url(word: str) -> bool:
    return word.startswith(("http://", "https://"))


class AskedServer:
    """One server. The token is the caller's PANGLOT_TOKEN. Raises StartError when the server cannot be reached."""

    def __init__(self, url: str, dialect: str = "", field: str = "") -> None:
        address = urlsplit(url)
        try:
            port = address.port
        except ValueError:
            port = -1
        if not address.hostname or port == -1:
            raise StartError(f"{url} is no address of a server", fix="such as http://127.0.0.1:8080")
        self.url = url
        self.secure = address.scheme == "https"
        self.host = address.hostname
        self.port = port or (443 if self.secure else 80)
        self.wanted = address.path + (f"?{address.query}" if address.query else "")
        self.dialect = dialect
        self.field = field
        self.token = os.environ.get("PANGLOT_TOKEN", "")

    @property
    def base(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def describe(self) -> About:
        """What the server says about itself. Of a server that is none of ours only the given path is known."""
        status, _, body = self._send("GET", "/openapi.json", {}, b"")
        known: dict[str, Any] = {}
        if status == 200:
            with contextlib.suppress(ValueError, AttributeError):
                known = json.loads(body).get("x-panglot") or {}
        if status == 401:
            raise StartError(f"{self.base} wants a token", fix="set PANGLOT_TOKEN")
        path = self.wanted if self.wanted not in ("", "/") else str(known.get("path") or "/")
        dialect = self.dialect or str(known.get("dialect", ""))
        return About(dialect, path, {}, known.get("api") or {}, self.field)

    def ask(self, asked: Ask, accept: str) -> OfflineReply:
        """Send one request. Failures of the script are replies; raises StartError when there is no answer."""
        content_type, body = asked.encoded()
        headers = {"Content-Type": content_type, "Accept": accept, **asked.headers}
        began = time.perf_counter()
        status, answer_type, answer = self._send(asked.method, asked.path, headers, body)
        taken = int((time.perf_counter() - began) * 1e6)
        error = "" if status < 400 else f"status {status}: {answer[:200].decode(errors='replace')}"
        return OfflineReply(status, answer_type, answer, total_us=taken, error=error)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        status, _, body = self._send("GET", path, {}, b"")
        return status, body.decode(errors="replace")

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        connection: http.client.HTTPConnection
        if self.secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE, context=context)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            with contextlib.closing(connection):
                connection.request(method, path, body or None, {**headers, **self.headers()})
                response = connection.getresponse()
                return response.status, response.getheader("Content-Type") or "", response.read()
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", "") or str(error) or type(error).__name__
            raise StartError(f"{self.base} does not answer: {why}", fix="is the server running?") from None
