"""A receiver of webhooks on a thread of its own."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from typing import Any


class Receiver(http.server.ThreadingHTTPServer):
    """Takes events; the first tries may be refused."""

    def __init__(self) -> None:
        self.events: list[tuple[dict[str, str], bytes]] = []
        """Headers and body of what it took."""
        self.refused: list[str] = []
        """The ids of what it refused."""
        self.refuse = 0
        self.files: dict[str, tuple[str, bytes]] = {}
        """Content type and content of files that were uploaded, by path."""
        super().__init__(("127.0.0.1", 0), Take)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Take(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.server.refuse:
            self.server.refuse -= 1
            self.server.refused.append(self.headers["webhook-id"])
            self.send_response(500)
        else:
            self.server.events.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
        self.send_header("content-length", "0")
        # The server that is told may be killed meanwhile.
        with contextlib.suppress(OSError):
            self.end_headers()

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.server.refuse:
            self.server.refuse -= 1
            self.send_response(403)
        else:
            self.server.files[self.path] = (self.headers["content-type"], body)
            self.send_response(201)
            self.send_header("location", f"http://{self.server.host}/stored{self.path}?signed=1")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver for the length of a test."""
    server = Receiver()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
