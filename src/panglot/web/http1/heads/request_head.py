"""The head of one request: what its headers say, and which heads are refused."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from panglot.engine.call import Fault
from panglot.settings import Settings
from panglot.web.access.hidden_headers import Credentials
from panglot.web.front import Front
from panglot.web.paths import Destination
from panglot.web.v2.routes import TensorTarget

if TYPE_CHECKING:
    from panglot.web.http1.connection import HttpConnection

REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
MILLISECONDS = re.compile(rb"[0-9]{1,12}(\.[0-9]{0,9})?")


class RequestRefused(Exception):
    """Raised when the request being read breaks a limit or a rule; `limit` names it for the metrics."""

    def __init__(self, fault: Fault, limit: str) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.limit = limit


class RequestHead:
    """What the server needs of a request's head. Filled header by header as they arrive."""

    __slots__ = (
        "accept",
        "authorization",
        "before_body",
        "content_length",
        "content_type",
        "encoding",
        "expects_continue",
        "foreign",
        "given_id",
        "given_timeout",
        "headers",
        "host",
        "hosts",
        "last_event_id",
        "method",
        "origin",
        "prefer",
        "size",
        "trace",
        "transfer_encoding",
        "url",
    )

    def __init__(self) -> None:
        self.url = b""
        self.method = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0
        self.content_length = -1
        self.content_type = b""
        self.transfer_encoding = b""
        self.encoding = b""
        self.accept = b""
        self.authorization = b""
        self.host = b""
        self.hosts = 0
        self.origin = b""
        self.foreign = False
        """Whether a browser says that a page of another site sends this."""
        self.given_id = b""
        self.given_timeout = b""
        self.trace = b""
        self.last_event_id = b""
        self.prefer = b""
        self.expects_continue = False
        self.before_body: int
        """How many headers came before a chunked body; all later ones are trailers."""

    def add(self, name: bytes, value: bytes, limits: Settings) -> None:
        """Add one header. Raises RequestRefused when there are too many or they are too large."""
        size = len(name) + len(value)
        self.size += size
        name = name.lower()
        headers = self.headers
        headers.append((name, value))
        if size > limits.max_header or self.size > limits.max_headers or len(headers) > limits.max_header_count:
            fault = Fault(431, "headers_too_large", "the request's headers are too large or too many")
            raise RequestRefused(fault, "headers")
        read = KNOWN.get(name)
        if read is not None:
            read(self, value)

    def target(self, raw: tuple[bytes, ...] = ()) -> tuple[bytes, bytes]:
        """Path and query. The path is decoded once, unless it begins like one of `raw`. A URL loses its host."""
        path, _, query = self.url.partition(b"?")
        if path[:1] != b"/":
            scheme, separator, rest = path.partition(b"://")
            if separator and scheme.lower() in (b"http", b"https"):
                path = b"/" + rest.partition(b"/")[2]
        if b"%" in path and not path.startswith(raw):
            path = urllib.parse.unquote_to_bytes(path)
        return path, query

    def check(self, front: Front, minor: int) -> None:
        """Refuse what no route accepts. Raises RequestRefused."""
        if self.transfer_encoding:
            if not minor:
                raise RequestRefused(Fault(400, "bad_http", "HTTP/1.0 has no chunked bodies"), "http")
            # Also refuses lists such as `gzip, chunked`: a proxy that reads such a body in another way would see other
            # requests in it than we do (request smuggling).
            if self.transfer_encoding.lower() != b"chunked":
                message = "the only transfer encoding this server takes is chunked"
                raise RequestRefused(Fault(501, "transfer_encoding", message), "encoding")
            self.before_body = len(self.headers)
        # With two of them, a proxy may have checked the other one.
        if self.hosts > 1 or (minor and not self.hosts):
            raise RequestRefused(Fault(400, "bad_host", "a request needs exactly one Host header"), "host")
        # A page may have its own name lead to this machine (DNS rebinding): only the Host header shows it.
        if self.hosts and not front.access.knows(self.host):
            message = "this server does not answer to that host name; see --allow-host"
            raise RequestRefused(Fault(403, "unknown_host", message), "host")
        # Without a token, any page in a browser on this machine could call the server.
        if self.origin and not front.access.is_closed and not self._is_welcome(front):
            message = "pages of other origins may not call this server; see --cors-origin"
            raise RequestRefused(Fault(403, "cross_origin", message), "origin")
        # Requests with tensors may be compressed: their worker unfolds them.
        if self.encoding not in (b"", b"identity") and not self.url.startswith(b"/v2/models/"):
            raise RequestRefused(
                Fault(415, "content_encoding", "compressed request bodies are not accepted"), "encoding"
            )

    def _is_welcome(self, front: Front) -> bool:
        """Whether the page that sends this comes from this server, or from an origin that is allowed."""
        return self.origin.partition(b"://")[2] == self.host or front.origins.allow(self.origin)

    def check_foreign(self, front: Front, may_visit: bool) -> None:
        """Refuse what pages of other sites make browsers send, unless their origin is allowed. Raises RequestRefused.

        A browser names no origin for a picture or a script. A link on another site may lead to our own pages.
        """
        headers = dict(self.headers)
        visit = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
        welcome = self._is_welcome(front) if self.origin else front.origins.anyone
        if not (welcome or (visit and may_visit)):
            message = "pages of other sites may not call this server; see --cors-origin"
            raise RequestRefused(Fault(403, "cross_site", message), "origin")

    def check_trailers(self) -> None:
        """Refuse headers behind the body that would have meant something before it. Raises RequestRefused."""
        for name, _ in self.headers[self.before_body :]:
            # The parser reports trailers as it does headers, so `add` has already taken them at their word.
            if name in KNOWN:
                message = f"{name.decode('latin-1')} may not come behind the body"
                raise RequestRefused(Fault(400, "bad_trailer", message), "http")

    def request_id(self, front: Front, platform_header: bytes = b"") -> bytes:
        """The id the client gave, in our header or the platform's, if it is harmless; else a new one."""
        given = self.given_id
        if not given and platform_header:
            given = next((value for name, value in self.headers if name == platform_header), b"")
        # The id goes into logs, header lines and the worker's head: only plain characters may.
        if given and REQUEST_ID.fullmatch(given):
            return given
        return front.new_request_id()

    def timeout(self, longest: float) -> float:
        """Seconds until the deadline: `longest`, or less if the client wants less."""
        return min(longest, float(self.given_timeout) / 1000) if self.given_timeout else longest

    def scope(self, method: bytes, path: bytes, query: bytes) -> dict[str, Any]:
        """The ASGI scope of the request, without what the connection knows."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "method": method.decode("ascii"),
            "path": path.decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
        }

    def for_worker(self, destination: Destination, path: bytes, query: bytes, connection: HttpConnection) -> bytes:
        """What the worker gets behind the request's id: the fields of `panglot_worker.line.wire.Head`."""
        more: tuple[bytes, ...] = ()
        if destination.route.whole_head:
            carriers = destination.model.contract.token_headers
            more = self._the_rest(connection.client, connection.front.access.credentials, carriers)
        if destination.tensors is not None:
            return self._for_tensors(destination.tensors, *more)
        path = path[destination.cut :] or b"/"
        # NUL separates the fields below: a path with one in it would forge the fields behind it.
        if b"\0" in path:
            path = path.replace(b"\0", b"")
        fields = (b"", destination.worker_route, self.content_type, self.accept, path, query, b"", self.trace)
        if not more and not destination.further:
            return b"\0".join((*fields, self.last_event_id) if self.last_event_id else fields)
        whole = (*fields, self.last_event_id, *(more or (b"", b"")))
        return b"\0".join((*whole, destination.further) if destination.further else whole)

    def _for_tensors(self, target: TensorTarget, client: bytes = b"", headers: bytes = b"") -> bytes:
        """The same fields for a request with tensors, as if it came on the model's own route."""
        # Reversed, because the last entry wins in a dict: of a header that comes twice the first counts.
        first = dict(reversed(self.headers))
        length, accepted = first.get(b"inference-header-content-length", b""), first.get(b"accept-encoding", b"")
        own = (
            b"",
            target.route,
            b"",
            self.accept,
            target.path,
            b"",
            b"",
            self.trace,
            b"",
            client,
            headers,
            b"POST",
            b"",
            b"",
        )
        return b"\0".join((*own, target.form, target.model, target.version, length, self.encoding, accepted))

    def _the_rest(
        self, client: tuple[str, int] | None, credentials: Credentials, carriers: frozenset[bytes]
    ) -> tuple[bytes, bytes]:
        """The client's address and the headers, for the worker of a script that wants them.

        Tokens and cookies of this server are left out. Every line ends with a newline, and there is always one: an
        empty field means that the worker gets no headers.
        """
        address = client[0].encode("latin-1", "replace") if client else b""
        headers = credentials.without(self.headers, carriers)
        return address, b"".join(b"%b:%b\n" % header for header in headers) or b"\n"


def _length(head: RequestHead, value: bytes) -> None:
    head.content_length = int(value) if value.isdigit() else -1


def _host(head: RequestHead, value: bytes) -> None:
    head.hosts += 1
    head.host = value


def _transfer_encoding(head: RequestHead, value: bytes) -> None:
    """Join several lines of this header: together they are one list."""
    head.transfer_encoding = b"%b, %b" % (head.transfer_encoding, value) if head.transfer_encoding else value


def _fetch_site(head: RequestHead, value: bytes) -> None:
    head.foreign = head.foreign or value.lower() == b"cross-site"


def _expect(head: RequestHead, value: bytes) -> None:
    head.expects_continue = value.lower() == b"100-continue"


def _prefer(head: RequestHead, value: bytes) -> None:
    """Join several lines of this header: together they are one list."""
    head.prefer = b"%b, %b" % (head.prefer, value) if head.prefer else value


def _field(name: str) -> Callable[[RequestHead, bytes], None]:
    return lambda head, value: setattr(head, name, value)


KNOWN: dict[bytes, Callable[[RequestHead, bytes], None]] = {
    b"content-length": _length,
    b"content-type": _field("content_type"),
    b"accept": _field("accept"),
    b"authorization": _field("authorization"),
    b"x-request-id": _field("given_id"),
    b"x-timeout-ms": _field("given_timeout"),
    b"host": _host,
    b"content-encoding": _field("encoding"),
    b"transfer-encoding": _transfer_encoding,
    b"expect": _expect,
    b"origin": _field("origin"),
    b"sec-fetch-site": _fetch_site,
    b"traceparent": _field("trace"),
    b"last-event-id": _field("last_event_id"),
    b"prefer": _prefer,
}
