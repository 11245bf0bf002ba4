"""One HTTP/1.1 connection: framing, limits, and the short way from a request to the engine.

A subclass of uvicorn's httptools protocol. Requests to the script never touch ASGI; all other routes are answered by
the ASGI app through uvicorn's own cycle. Timeouts are swept by the server, not armed per request.
"""

from __future__ import annotations

import asyncio
import re
import time
import urllib.parse
from collections import deque
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from franca.engine.call import Fault
from franca.web.exchange import Exchange, answer_bytes, cors_lines
from franca.web.front import Front
from franca.web.native.base import InferRoute

IDLE, HEADERS, BODY, ANSWERING, CLOSING = "idle", "headers", "body", "answering", "closing"
LINGER = 1.0
CHUNK_OVERHEAD = 32
SMALL_BODY = 65536
"""The largest body of a request that is not for the script."""

REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
monotonic = time.monotonic


class Refused(Exception):
    """The request being parsed breaks a limit; raised out of a parser callback."""

    def __init__(self, fault: Fault, limit: str) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.limit = limit


class Connection(HttpToolsProtocol):
    """Parses requests one after the other; at most one of them is being answered."""

    def __init__(self, front: Front, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, state, {}, loop)
        self.front = front
        self.limits = front.settings
        self.phase = HEADERS
        self.since = monotonic()
        self.last_data = self.since
        self.count = 0
        self.last_answer = b""
        """The refusal that ends this connection once the answers before it are written."""
        self.entry: Exchange | RequestResponseCycle | None = None
        """The request whose body is being read."""
        self.current: Exchange | RequestResponseCycle | None = None
        """The request being answered."""
        self.waiting: deque[Exchange | RequestResponseCycle] = deque()
        self.refused: Refused | None = None
        self.header_bytes = 0
        self.body_bytes = 0
        self.raw_bytes = 0
        self.chunks = 0
        self.stalled_since = 0.0
        self.stalled_size = 0
        self._reset_request()

    def _reset_request(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.header_bytes = 0
        self.body_bytes = 0
        self.raw_bytes = 0
        self.chunks = 0
        self.transfer_encoding = b""
        self.content_type = b""
        self.content_length = -1
        self.accept = b""
        self.authorization = b""
        self.given_id = b""
        self.given_timeout = b""
        self.hosts = 0
        self.host = b""
        self.encoding = b""
        self.origin = b""
        self.trace = b""
        self.expect_100_continue = False

    # Transport

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self.front.metrics.refused["connections"] += 1
            self._refuse(Fault(503, "too_many_connections", "this server has too many connections", 1), "connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self.phase = CLOSING
        for entry in (self.current, self.entry, *self.waiting):
            if isinstance(entry, Exchange):
                self._let_go(entry)
        self.waiting.clear()
        cycle = self.current if isinstance(self.current, RequestResponseCycle) else None
        self.cycle = cycle  # type: ignore[assignment]
        super().connection_lost(exc)
        self.current = self.entry = None
        self.transport = None  # type: ignore[assignment]

    def _let_go(self, exchange: Exchange) -> None:
        if exchange.id:
            self.front.engine.cancel(exchange)
        self.front.held -= exchange.size
        exchange.size = 0

    def data_received(self, data: bytes) -> None:
        if self.phase == CLOSING:
            return
        self.last_data = monotonic()
        if self.phase == IDLE:
            self.phase, self.since = HEADERS, self.last_data
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(Fault(400, "no_upgrade", "this server does not change protocols"), "upgrade")
        except httptools.HttpParserError as error:
            refused = error.__context__ if isinstance(error.__context__, Refused) else self.refused
            if refused is not None:
                self._refuse(refused.fault, refused.limit)
            else:
                self._refuse(Fault(400, "bad_http", "this is not a valid HTTP/1.1 request"), "http")
        else:
            self._check_overhead(len(data))

    def _check_overhead(self, arrived: int) -> None:
        """Bound what the parser swallows without a word: heads not yet whole, and extensions of chunks."""
        if self.phase == HEADERS and not self.headers and not self.url:
            self.header_bytes += arrived
            if self.header_bytes > self.limits.max_headers + self.limits.max_request_line:
                self._refuse(Fault(431, "headers_too_large", "the request's head is too large"), "headers")
        elif self.phase == BODY and self.content_length < 0 and self.entry is not None:
            self.raw_bytes += arrived
            if self.raw_bytes > self.body_bytes + CHUNK_OVERHEAD * self.chunks + SMALL_BODY:
                self._refuse(Fault(400, "bad_http", "the body's chunks carry too much besides data"), "chunks")

    def eof_received(self) -> None:
        return None

    # Parser callbacks

    def on_message_begin(self) -> None:
        self._reset_request()
        if self.phase != CLOSING:
            self.phase, self.since = HEADERS, monotonic()

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > self.limits.max_request_line:
            self._stop(Fault(414, "uri_too_long", "the request line is too long"), "request_line")

    def on_header(self, name: bytes, value: bytes) -> None:
        limits = self.limits
        size = len(name) + len(value)
        self.header_bytes += size
        name = name.lower()
        self.headers.append((name, value))
        if (
            size > limits.max_header
            or self.header_bytes > limits.max_headers
            or len(self.headers) > limits.max_header_count
        ):
            self._stop(Fault(431, "headers_too_large", "the request's headers are too large or too many"), "headers")
        keep = KEEP.get(name)
        if keep is not None:
            keep(self, value)

    def on_headers_complete(self) -> None:
        if self.refused is not None:
            return
        began = self.since
        self.count += 1
        method = self.parser.get_method()
        path, _, query = self.url.partition(b"?")
        if path[:1] != b"/":
            path = absolute_path(path)
        if b"%" in path:
            path = urllib.parse.unquote_to_bytes(path)
        minor = 0 if self.parser.get_http_version() == "1.0" else 1
        self._check_head(minor)
        keep_alive = (
            minor == 1 and self.parser.should_keep_alive() and self.count < self.limits.max_requests_per_connection
        )
        route = self.front.infer_route(path) if method == b"POST" else None
        self.phase = BODY
        if route is None:
            self._begin_other(method, path, query, keep_alive)
            return
        exchange = Exchange(self, self.front, route, began)
        exchange.keep_alive, exchange.minor = keep_alive, minor
        exchange.request_id = self._request_id()
        self.entry = exchange
        self._admit(exchange, route)
        exchange.trace = self.trace
        if self.origin and self.front.origins:
            exchange.lines = cors_lines(self.front, self.origin)
        exchange.head = b"\0".join(
            (
                exchange.request_id,
                route.path.encode(),
                self.content_type,
                self.accept,
                path.replace(b"\0", b""),
                query,
                b"",
                self.trace,
            )
        )

    def _request_id(self) -> bytes:
        if self.given_id and REQUEST_ID.fullmatch(self.given_id):
            return self.given_id
        return self.front.new_request_id()

    def _check_head(self, minor: int) -> None:
        if self.parser.should_upgrade():
            self._stop(Fault(400, "no_upgrade", "this server does not change protocols"), "upgrade")
        if self.transfer_encoding and not minor:
            self._stop(Fault(400, "bad_http", "HTTP/1.0 has no chunked bodies"), "http")
        if self.hosts > 1 or (minor and not self.hosts):
            self._stop(Fault(400, "bad_host", "a request needs exactly one Host header"), "host")
        if self.hosts and not self.front.access.knows(self.host):
            self._stop(
                Fault(403, "unknown_host", "this server does not answer to that host name; see --allow-host"), "host"
            )
        if self.origin and not self.front.access.token and not self._same_origin():
            self._stop(
                Fault(403, "cross_origin", "pages of other origins may not call this server; see --cors-origin"),
                "origin",
            )
        if self.encoding not in (b"", b"identity"):
            self._stop(Fault(415, "content_encoding", "compressed request bodies are not accepted"), "encoding")

    def _same_origin(self) -> bool:
        """Whether a browser's page comes from this server, or from an origin that was allowed."""
        return self.origin.partition(b"://")[2] == self.host or self.origin in self.front.origins

    def _admit(self, exchange: Exchange, route: InferRoute) -> None:
        """Everything that can be said before the body is read."""
        if self.front.access.refuses(route.access, self.authorization):
            self._stop(Fault(401, "unauthorized", "this server needs a token: Authorization: Bearer ..."), "token")
        if self.content_length > self.limits.max_body:
            self._stop(self._too_large(), "body")
        if self.content_length > 0:
            self._hold(exchange, self.content_length)
        if self.expect_100_continue and self.current is None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _too_large(self) -> Fault:
        return Fault(413, "body_too_large", f"the request body is larger than {self.limits.max_body} bytes")

    def _hold(self, exchange: Exchange, size: int) -> None:
        if self.front.held + size > self.limits.max_held:
            self._stop(Fault(503, "memory", "the server holds too many request bodies; try again later", 1), "held")
        self.front.held += size
        exchange.size += size

    def on_body(self, body: bytes) -> None:
        if self.refused is not None:
            return
        entry = self.entry
        self.body_bytes += len(body)
        if isinstance(entry, Exchange):
            if self.content_length < 0:
                if self.body_bytes > self.limits.max_body:
                    self._stop(self._too_large(), "body")
                self._hold(entry, len(body))
            entry.pieces.append(body)
        elif entry is not None:
            if self.body_bytes > SMALL_BODY:
                self._stop(Fault(413, "body_too_large", "this route takes no large body"), "body")
            entry.body += body
            entry.message_event.set()

    def on_chunk_header(self) -> None:
        self.chunks += 1
        if self.chunks > self.limits.max_chunks:
            self._stop(Fault(400, "too_many_chunks", "the request body has too many chunks"), "chunks")

    def on_message_complete(self) -> None:
        entry = self.entry
        if entry is None or self.refused is not None:
            return
        self.entry = None
        if isinstance(entry, Exchange):
            if entry.size != self.body_bytes:
                self._stop(Fault(400, "bad_http", "the body is not as long as the request says"), "http")
            entry.arrived = monotonic()
            entry.deadline = entry.arrived + self._timeout()
        else:
            entry.more_body = False
            entry.message_event.set()
        if self.current is not None:
            self.waiting.append(entry)
            self.flow.pause_reading()
            return
        self._answer(entry)

    def _timeout(self) -> float:
        """The server's own, or a shorter one the client asked for."""
        if self.given_timeout:
            try:
                return min(self.limits.timeout, max(0.0, float(self.given_timeout) / 1000))
            except ValueError:
                pass
        return self.limits.timeout

    # Answering

    def _answer(self, entry: Exchange | RequestResponseCycle) -> None:
        self.current = entry
        if self.phase != CLOSING:
            self.phase = ANSWERING
        if isinstance(entry, Exchange):
            fault = self.front.engine.submit(entry)
            if fault is not None:
                entry.fail(fault)
        else:
            self._start_asgi_task(entry, self.app)

    def finished(self, entry: Exchange) -> None:
        """An answer is written: make way for the next request, or close."""
        self.front.held -= entry.size
        entry.size = 0
        self._next(entry.keep_alive)

    def _cycle_finished(self) -> None:
        cycle = self.current
        if isinstance(cycle, RequestResponseCycle):
            self._next(cycle.keep_alive)

    def _next(self, keep_alive: bool) -> None:
        self.current = None
        if self.transport is None or self.transport.is_closing():
            return
        if not keep_alive:
            self._close_after_writing()
        elif self.waiting:
            self._answer(self.waiting.popleft())
        elif self.phase == CLOSING:
            self.transport.write(self.last_answer)
            self._close_after_writing()
        else:
            self.flow.resume_reading()
            if self.phase == ANSWERING:
                self.phase, self.since = IDLE, monotonic()

    def _begin_other(self, method: bytes, path: bytes, query: bytes, keep_alive: bool) -> None:
        """A request for a route that is not the script's."""
        if self.content_length > SMALL_BODY:
            self._stop(Fault(413, "body_too_large", "this route takes no large body"), "body")
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "method": method.decode("ascii"),
            "path": path.decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "request_id": self._request_id(),
            "began": self.since,
        }
        self.entry = RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive and not self.front.draining,
            on_response=self._cycle_finished,
        )

    # Refusing

    def _stop(self, fault: Fault, limit: str) -> None:
        """Give up on the request being parsed. Raises Refused through the parser."""
        self.refused = Refused(fault, limit)
        raise self.refused

    def _refuse(self, fault: Fault, limit: str) -> None:
        """Answer a request that will not be read, and close."""
        self.front.metrics.refused[limit] += 1
        entry, self.entry = self.entry, None
        request_id = entry.request_id if isinstance(entry, Exchange) else self._request_id()
        route = entry.route if isinstance(entry, Exchange) else None
        if isinstance(entry, Exchange):
            self.front.held -= entry.size
            entry.size = 0
        self.front.metrics.requests[route.name if route else "other", fault.status] += 1
        answer = answer_bytes(self.front, route, fault, request_id)
        if self.current is not None or self.waiting:
            # Answers to earlier requests of this connection come first.
            self.phase, self.last_answer = CLOSING, answer
            return
        self.transport.write(answer)
        self._close_after_writing()

    def _close_after_writing(self) -> None:
        """Half-close and read on for a moment: closing with unread input would destroy the answer on its way."""
        self.phase, self.since = CLOSING, monotonic()
        self.refused = self.refused or Refused(Fault(400, "", ""), "")
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    # Time, swept by the server

    def sweep(self, now: float) -> None:
        if self.transport is None:
            return
        limits, waited = self.limits, now - self.since
        if self.flow.write_paused:
            self._check_stall(now)
        else:
            self.stalled_since = 0.0
        if self.phase == IDLE:
            if waited > limits.keep_alive:
                self.transport.close()
        elif self.phase == HEADERS:
            if waited > limits.header_timeout:
                self._late_head()
        elif self.phase == BODY and self.entry is not None:
            self._check_body_pace(now, waited)
        elif self.phase == CLOSING and self.current is None and waited > LINGER:
            self.transport.abort()

    def _late_head(self) -> None:
        if self._has_begun():
            self._refuse(Fault(408, "slow_headers", "the request's headers took too long"), "header_timeout")
        else:
            self.front.metrics.refused["header_timeout"] += 1
            self.transport.close()

    def _check_body_pace(self, now: float, waited: float) -> None:
        limits = self.limits
        too_slow = waited > limits.body_rate_after and self.body_bytes < limits.body_rate * waited
        if now - self.last_data > limits.body_gap or waited > limits.body_timeout or too_slow:
            self._refuse(Fault(408, "slow_body", "the request's body took too long"), "body_timeout")

    def _check_stall(self, now: float) -> None:
        size = self.transport.get_write_buffer_size()
        if not self.stalled_since or size < self.stalled_size:
            self.stalled_since, self.stalled_size = now, size
        elif now - self.stalled_since > self.limits.write_stall:
            self.front.metrics.refused["write_stall"] += 1
            self.transport.abort()

    # Flow control of streams

    def pause_writing(self) -> None:
        super().pause_writing()
        if isinstance(self.current, Exchange) and self.current.started:
            self.front.engine.hold(self.current, True)

    def resume_writing(self) -> None:
        super().resume_writing()
        if isinstance(self.current, Exchange) and self.current.started:
            self.front.engine.hold(self.current, False)

    # Ending

    def close_if_idle(self, now: float, grace: float) -> None:
        """While draining: close a connection nothing has been asked on for a while."""
        quiet = self.phase == IDLE or (self.phase == HEADERS and not self._has_begun())
        if quiet and now - self.since > grace and self.transport is not None:
            self.transport.close()

    def _has_begun(self) -> bool:
        return self.last_data > self.since or self.header_bytes > 0

    def open_requests(self) -> int:
        arriving = self.phase == BODY or (self.phase == HEADERS and self._has_begun())
        return len(self.waiting) + (self.current is not None) + arriving

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


def absolute_path(target: bytes) -> bytes:
    """The path of a request target in absolute form, as proxies send it; other forms name no path of ours."""
    scheme, found, rest = target.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        return target
    return b"/" + rest.partition(b"/")[2]


def _keep_length(connection: Connection, value: bytes) -> None:
    connection.content_length = int(value) if value.isdigit() else -1


def _keep_host(connection: Connection, value: bytes) -> None:
    connection.hosts += 1
    connection.host = value


def _keep_expect(connection: Connection, value: bytes) -> None:
    connection.expect_100_continue = value.lower() == b"100-continue"


def _keep(name: str) -> Any:
    return lambda connection, value: setattr(connection, name, value)


KEEP = {
    b"content-length": _keep_length,
    b"content-type": _keep("content_type"),
    b"accept": _keep("accept"),
    b"authorization": _keep("authorization"),
    b"x-request-id": _keep("given_id"),
    b"x-timeout-ms": _keep("given_timeout"),
    b"host": _keep_host,
    b"content-encoding": _keep("encoding"),
    b"transfer-encoding": _keep("transfer_encoding"),
    b"expect": _keep_expect,
    b"origin": _keep("origin"),
    b"traceparent": _keep("trace"),
}
