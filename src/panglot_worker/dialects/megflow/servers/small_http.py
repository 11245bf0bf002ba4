"""The HTTP of one server node in a user's own program: its routes, by the standard library's server."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, ClassVar, Dict, Generator, Optional, Tuple
from urllib.parse import urlsplit

from panglot_worker.graphs.configuration import Node
from panglot_worker.line import wire

Replies = Generator[wire.Reply, None, None]
SendRequest = Callable[[wire.Head, bytes], Replies]

LARGEST = {"ImageServer": 64 << 20, "BytesServer": 64 << 20, "VideoServer": 256 << 20}
"""Bytes of a body, by the type of node."""
LONGEST_LENGTH = 18
"""Digits of a Content-Length; `int()` of a very long text takes long."""
CONNECTIONS = 128
SLOWEST = 60.0
"""Seconds a client may take to send or to read something."""
LOCAL = ("localhost", "127.0.0.1", "[::1]")
ROUTES: Dict[str, Tuple[Tuple[str, str], ...]] = {
    "ImageServer": (("POST", "/analyze/*"),),
    "BytesServer": (("POST", "/analyze/bytes"),),
    "VideoServer": (
        ("POST", "/start/*"), ("POST", "/stop/*"), ("GET", "/list"), ("GET", "/get_msgs/*"), ("GET", "/events/*"),
        ("GET", "/preview/*"), ("POST", "/analyze_video"),
    ),
}  # fmt: skip
SPOOLED = "/analyze_video"
"""The body of this route goes into a file, and the file's path is passed on instead."""


class RequestRefused(Exception):
    """A request that does not reach the graph."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Listener:
    """One node's own port. Connections are taken once it was started. Raises OSError when the port is taken."""

    def __init__(self, send_request: SendRequest, path: str, node: Node) -> None:
        self.node = path
        # All addresses only where the user has said that no token is needed: there is none here.
        host = "" if os.environ.get("PANGLOT_NO_AUTH") == "1" else "127.0.0.1"
        about = {"send_request": send_request, "path_of_node": path, "type_of_node": node.ty, "local": bool(host)}
        self._server = Server((host, int(node.args["port"])), type("NodeHandler", (Handler,), about))
        self.port = int(self._server.server_address[1])
        self.url = "http://%s:%d" % (host or "0.0.0.0", self.port)  # noqa: S104  only shown
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._thread.ident is not None:
            self._server.shutdown()
        self._server.server_close()

    def wait(self, seconds: float) -> None:
        """Wait until all requests are answered, or so many seconds."""
        self._server.idle.wait(seconds)


class Server(ThreadingHTTPServer):
    """At most so many connections at once; `idle` while none is answered."""

    daemon_threads = True
    # Closing must not join threads of clients that keep their connection open.
    block_on_close = False

    def __init__(self, address: Tuple[str, int], handler: Any) -> None:
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._busy = 0
        self._lock = threading.Lock()
        self.idle = threading.Event()
        self.idle.set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            # Closed at once: each connection has a thread, and idle clients must not use up the machine.
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def answering(self, more: int) -> None:
        """Count requests in progress: 1 more, or -1."""
        with self._lock:
            self._busy += more
            (self.idle.clear if self._busy else self.idle.set)()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection to one node; `type` gives each node a class of its own."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "panglot", ""
    timeout = SLOWEST
    server: Server
    send_request: ClassVar[SendRequest]
    path_of_node: ClassVar[str]
    type_of_node: ClassVar[str]
    local: ClassVar[bool]

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the program's output is its own."""

    def _answer(self) -> None:
        self.server.answering(1)
        spooled: Optional[str] = None
        try:
            path, _, query = self.path.partition("?")
            self._check(path)
            body = self._body()
            if path == SPOOLED:
                spooled = spool(body)
                body = os.fsencode(spooled)
            self._send(type(self).send_request(self._head(path, query), body))
        except RequestRefused as refused:
            # The body may be unread: what is left of it must not be taken for the next request.
            self.close_connection = True
            self._whole(refused.status, "text/plain; charset=utf-8", refused.message.encode())
        finally:
            self.server.answering(-1)
            if spooled is not None:
                os.unlink(spooled)

    def _check(self, path: str) -> None:
        """Raises RequestRefused for what is not for this node, or comes by a page of another site."""
        host, origin = self.headers.get("host", ""), self.headers.get("origin")
        # A page of another site can let its own name point to 127.0.0.1 (DNS rebinding); the Host header tells.
        if self.local and host.rpartition(":")[0] not in LOCAL and host not in LOCAL:
            raise RequestRefused(403, "this server answers only to the names 127.0.0.1 and localhost")
        if origin is not None and urlsplit(origin).netloc != host:
            raise RequestRefused(403, "pages of other sites may not send requests")
        routes = [method for method, route in ROUTES[self.type_of_node] if fits(route, path)]
        if not routes:
            raise RequestRefused(404)
        if self.command not in routes:
            raise RequestRefused(405, "it takes %s" % routes[0])

    def _body(self) -> bytes:
        lengths = self.headers.get_all("content-length", ["" if self.command == "POST" else "0"])
        length = lengths[0] if len(lengths) == 1 else ""
        # Two lengths, or a length beside chunks, are how requests are smuggled past proxies.
        if "transfer-encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise RequestRefused(411, "the body needs a Content-Length")
        if len(length) > LONGEST_LENGTH or int(length) > LARGEST[self.type_of_node]:
            raise RequestRefused(413, "the body may have %d bytes" % LARGEST[self.type_of_node])
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise RequestRefused(400, "the body broke off")
        return body

    def _head(self, path: str, query: str) -> wire.Head:
        def said(name: str) -> bytes:
            return self.headers.get(name, "").encode("latin-1", "replace").replace(b"\0", b"")

        return wire.Head(
            route=self.path_of_node.encode(), content_type=said("content-type"), accept=said("accept"),
            path=path.encode("latin-1", "replace"), query=query.encode("latin-1", "replace"),
            last_event_id=said("last-event-id"),
        )  # fmt: skip

    # Out

    def _send(self, replies: Replies) -> None:
        begun = False
        with contextlib.closing(replies):
            for reply in replies:
                if not begun and not reply.flags & wire.MORE:
                    self._final(reply)
                    return
                if not begun:
                    self._begin(reply)
                    begun = True
                if reply.body and not reply.flags & wire.ERROR:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(reply.body), bytes(reply.body)))
        if begun:
            self.wfile.write(b"0\r\n\r\n")
        else:
            raise RequestRefused(503, "the server is stopping")

    def _begin(self, reply: wire.Reply) -> None:
        self.send_response(reply.status)
        self.send_header("content-type", reply.head.split(b"\0")[0].decode("latin-1"))
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _final(self, reply: wire.Reply) -> None:
        if reply.flags & wire.ERROR:
            about = json.loads(bytes(reply.body))
            if about["traceback"]:
                sys.stderr.write(about["traceback"].rstrip() + "\n")
            message = b"" if reply.status == 404 else str(about["message"]).encode("utf-8", "backslashreplace")
            self._whole(reply.status, "text/plain; charset=utf-8", message)
            return
        kind, *lines = reply.head.decode("latin-1").split("\0")
        self._whole(reply.status, kind, bytes(reply.body), dict(line.split(": ", 1) for line in lines))

    def _whole(self, status: int, kind: str, body: bytes, more: Optional[Dict[str, str]] = None) -> None:
        self.send_response(status)
        headers = {**({"content-type": kind} if body else {}), "content-length": str(len(body)), **(more or {})}
        if self.close_connection:
            headers["connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def fits(route: str, path: str) -> bool:
    """Whether a path is the route's; a star stands for one segment that is not empty."""
    if not route.endswith("*"):
        return path == route
    rest = path[len(route) - 1 :]
    return path.startswith(route[:-1]) and bool(rest) and "/" not in rest


def spool(body: bytes) -> str:
    """A file with the body. The function that answers removes it."""
    with tempfile.NamedTemporaryFile(prefix="panglot-video-", delete=False) as file:
        file.write(body)
        return file.name
