"""One HTTP/1.1 connection: from the bytes that arrive to whole requests, within limits.

A subclass of uvicorn's httptools protocol. Requests to the script never touch ASGI; all other routes are answered by
the ASGI app through uvicorn's own cycle. `answering` writes the answers, and tells the phases of a connection. Limits
on time are in `pace`, swept by the server, not armed per request.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from panglot.engine.call import Fault
from panglot.web.contract import neutral_error, v2_error
from panglot.web.front import Front
from panglot.web.http1.answering import ANSWERING, BODY, CLOSING, HEADERS, IDLE, monotonic
from panglot.web.http1.exchange import BLUNDER, NO_ROOM, Exchange, answer_bytes
from panglot.web.http1.head import MILLISECONDS, RequestHead, RequestRefused
from panglot.web.http1.head_cache import CachedHead, raw_head
from panglot.web.http1.reading import SPLIT_FROM, Reading
from panglot.web.limits.spool import SpooledBody
from panglot.web.models import Model
from panglot.web.paths import Destination
from panglot.web.v2 import metadata

USUAL_END = len(b" HTTP/1.1")
CHUNK_OVERHEAD = 32
KEPT_HEADS = 8
"""How many heads of a connection are kept, one after the other: whoever sends more changes them each time."""
SMALL_BODY = 65536
"""The largest body of a request that is not for the script."""

log = logging.getLogger("panglot.web")

NOT_SPOKEN = Fault(505, "bad_version", "this server speaks HTTP/1.1 and HTTP/1.0")


class HttpConnection(Reading):
    """Parses requests one after the other. At most one of them is being answered."""

    def __init__(self, front: Front, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(front, config, state, loop)
        self.count = 0
        self.refused: RequestRefused | None = None
        self.reserved = False
        """Whether this connection is beyond the limit and may only ask for public routes."""
        self.arrived = 0
        """Bytes that came after the read in which the request, or later its body, began."""
        self.chunks = 0
        self.line = b""
        """The beginning of a request line that has not come whole yet."""
        self.heads_kept = 0

    # Transport

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.reserved = not self.front.quota.enter(self)

    def turn_away(self) -> None:
        """Close a connection beyond the limit, unless its request is being answered."""
        if self.transport is not None and self.current is None:
            self.refuse(too_many_connections(), "connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self.front.quota.leave(self)
        self.reads_to = self.for_heads
        entry, self.entry = self.entry, None
        if isinstance(entry, Exchange):
            self.let_go(entry)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, whose callbacks below do the work, and answer whatever stops it."""
        if self.phase == CLOSING:
            return
        self.last_data = monotonic()
        whole, count = self.phase == IDLE, self.count
        if whole:
            self.phase, self.since, self.arrived = HEADERS, self.last_data, 0
        self.arrived += len(data)
        if not self.begun or self.line:
            # Where the first line ends in HTTP/1.1, as nearly always, there is nothing to look at.
            usual = data.find(b"\r\n") - data.find(b" HTTP/1.1\r\n") == USUAL_END
            if (self.line or not usual) and self._is_rtsp(data):
                self.head = RequestHead()
                self.refuse(NOT_SPOKEN, "http")
                return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refuse(Fault(400, "no_upgrade", "this server does not change protocols"), "upgrade")
        except httptools.HttpParserError as error:
            refused = error.__context__ if isinstance(error.__context__, RequestRefused) else self.refused
            if refused is not None:
                # Its frames hold the data and this connection, which holds it: garbage that would pile up.
                refused.__traceback__ = None
                self.refuse(refused.fault, refused.limit)
            elif isinstance(error, httptools.HttpParserCallbackError):
                log.error("the server itself failed on a request", exc_info=error.__context__)
                self.refuse(BLUNDER, "blunder")
            else:
                self.refuse(Fault(400, "bad_http", "this is not a valid HTTP/1.1 request"), "http")
        else:
            self._check_overhead()
            if whole and self.heads_kept < KEPT_HEADS and self.count == count + 1:
                self._keep_head(data)

    def _keep_head(self, data: bytes) -> None:
        """Keep what came of a head whose request came whole, alone and in one read: the next may have the same."""
        head, front = self.head, self.front
        entry = self.current
        plain = not head.transfer_encoding and not head.foreign and not head.expects_continue and not self.reserved
        if not isinstance(entry, Exchange) or not entry.keep_alive or entry.upload is not None or not plain:
            return
        if self._lacks_token(entry):
            return  # It is a session that admits it, which ends.
        raw = raw_head(data, max(head.content_length, 0))
        path, query = head.target(front.paths.raw)
        destination = front.paths.find(self.parser.get_method(), path, query)
        if raw and destination is not None and destination.route is entry.route:
            self.heads_kept += 1
            told = self._told(destination, path, query)
            self.cached_head = CachedHead(raw, len(data), head, destination, front.paths, told)

    def take_again(self, cached: CachedHead, data: bytes) -> None:
        """Make the exchange of a request whose head has been parsed before, and have it answered."""
        body, quota = data[len(cached.raw) :], cached.destination.model.quota
        may_stay = self.count + 1 < self.limits.max_requests_per_connection
        if cached.paths is not self.front.paths or not may_stay or not quota.take(len(body), len(body)):
            self.data_received(data)
            return
        self.count += 1
        self.head, self.begun = cached.head, True
        self.last_data = self.since = now = monotonic()
        exchange = self._exchange(cached.destination, cached.told)
        exchange.size, exchange.arrived = len(body), now
        exchange.deadline = now + cached.head.timeout(exchange.model.settings.timeout)
        if body:
            exchange.pieces.append(body)
        self.phase = ANSWERING
        self.answer(exchange)

    def _is_rtsp(self, data: bytes) -> bool:
        """Whether this is a request of RTSP, which the parser accepts and does not tell apart."""
        line = (self.line + data).lstrip(b"\r\n")
        end = line.find(b"\r\n")
        self.line = b"" if end >= 0 else line[: self.limits.max_request_line]
        return end >= 0 and line.startswith(b" RTSP/", line.rfind(b" ", 0, end))

    def _check_overhead(self) -> None:
        """Bound the bytes that the parser takes without calling back: unfinished heads, and extensions of chunks."""
        if self.phase == HEADERS:
            if self.arrived > self.limits.max_headers + self.limits.max_request_line:
                self.refuse(Fault(431, "headers_too_large", "the request's head is too large"), "headers")
        elif self.phase == BODY and self.head.content_length < 0:
            useful = self.body_bytes + CHUNK_OVERHEAD * self.chunks
            if self.arrived > useful + SMALL_BODY:
                self.refuse(Fault(400, "bad_http", "the body's chunks carry too much besides data"), "chunks")

    def is_asking(self, model: Model) -> bool:
        """Whether a request for a model is arriving here, waits, or is being answered."""
        entries = (self.entry, self.current, *self.waiting)
        return any(isinstance(entry, Exchange) and entry.model.engine is model.engine for entry in entries)

    # Parser callbacks: an exception in one of them ends the parsing, and `data_received` answers it

    def on_message_begin(self) -> None:
        self.head = RequestHead()
        self.body_bytes = self.chunks = self.arrived = 0
        self.begun = True
        if self.phase != CLOSING:
            self.phase, self.since = HEADERS, monotonic()

    def on_url(self, url: bytes) -> None:
        self.head.url += url
        if len(self.head.url) > self.limits.max_request_line:
            self._stop(Fault(414, "uri_too_long", "the request line is too long"), "request_line")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head.add(name, value, self.limits)

    def on_headers_complete(self) -> None:
        """Check the head, find the route, and make the entry that the body is read into."""
        if self.phase == CLOSING:
            return
        head, parser = self.head, self.parser
        self.arrived = 0
        self.count += 1
        minor = 1 if parser.get_http_version() == "1.1" else self._check_version()
        if parser.should_upgrade():
            self._stop(Fault(400, "no_upgrade", "this server does not change protocols"), "upgrade")
        head.check(self.front, minor)
        keep_alive = minor == 1 and parser.should_keep_alive() and self.count < self.limits.max_requests_per_connection
        method = parser.get_method()
        path, query = head.target(self.front.paths.raw)
        destination = self.front.paths.find(method, path, query)
        if head.foreign:
            head.check_foreign(self.front, may_visit=destination is None and method in (b"GET", b"HEAD"))
        self.phase = BODY
        if self.reserved and not self.front.is_public(path):
            self._stop(too_many_connections(), "connections")
        if destination is None:
            self._begin_other(method, path, query, keep_alive and not self.reserved)
            return
        exchange = self._exchange(destination, self._told(destination, path, query))
        exchange.keep_alive, exchange.minor = keep_alive, minor
        self.entry = exchange
        self._admit(exchange)

    def _exchange(self, destination: Destination, told: bytes) -> Exchange:
        """The exchange of a request whose head is complete; `told` is what `_told` makes of it."""
        head, contract = self.head, destination.model.contract
        exchange = Exchange(self, self.front, destination, self.since)
        exchange.request_id = head.request_id(self.front, contract.id_header)
        exchange.trace = head.trace
        if head.origin and self.front.origins:
            exchange.lines = self.front.origins.lines(head.origin)
        if contract.id_header:
            exchange.lines += b"%s: %s\r\n" % (contract.id_header, exchange.request_id)
        exchange.head = exchange.request_id + told
        return exchange

    def _told(self, destination: Destination, path: bytes, query: bytes) -> bytes:
        """What the worker is told of the request being read, besides its id and its body."""
        head = self.head
        more = None
        if destination.route.whole_head:
            carriers = destination.model.contract.token_headers
            more = head.the_rest(self.client, self.front.access.credentials, carriers)
        if destination.tensors is not None:
            return head.for_tensors(destination.tensors, *(more or ()))
        told = head.for_worker(destination.told, path[destination.cut :] or b"/", query)
        if more is None and not destination.further:
            return told
        fields = (told, *(() if head.last_event_id else (b"",)), *(more or (b"", b"")))
        return b"\0".join((*fields, destination.further) if destination.further else fields)

    def _check_version(self) -> int:
        """The minor version of a request that is not HTTP/1.1, which is 0. Refuses every other version."""
        version = self.parser.get_http_version()
        if version != "1.0":
            self._stop(NOT_SPOKEN if version != "0.9" else NOT_SPOKEN._replace(status=400), "http")
        self.head.expects_continue = False
        return 0

    def _admit(self, exchange: Exchange) -> None:
        """Refuse whatever can be refused before the body is read: no token, too large, no room."""
        route, quota = exchange.route, exchange.quota
        if self.head.given_timeout and not MILLISECONDS.fullmatch(self.head.given_timeout):
            message = "X-Timeout-Ms is no number of milliseconds such as 1500"
            self._stop(Fault(400, "bad_timeout", message), "timeout")
        if self._lacks_token(exchange) and not (
            self.front.sessions.admits(self.parser.get_method().decode(), self.head.headers)
        ):
            self._stop(Fault(401, "unauthorized", "this server needs a token: Authorization: Bearer ..."), "token")
        length = self.head.content_length
        most = exchange.model.settings.video_bytes if route.spooled else quota.largest_body
        if length > most:
            self._stop(self.too_large(most, "video_bytes" if route.spooled else "max_body"), "body")
        if route.spooled:
            exchange.upload = self.front.spool.begin()
            exchange.upload.on_room = self.flow.resume_reading
            self.reads_to = self.front.quota.for_pieces
        elif quota.held + length > quota.most_for_large and not quota.fits(length):
            self._stop(NO_ROOM, "held")
        elif length < 0 or length >= SPLIT_FROM:
            self._find_room(exchange, length)
        self.send_continue()

    def _lacks_token(self, exchange: Exchange) -> bool:
        """Whether the request being read carries no token that its route asks for."""
        access, route, forms = self.front.access, exchange.route, exchange.model.contract.token_forms
        if forms:
            return access.refuses_all(route.access, self.head.authorization, forms, self.head.headers)
        return access.refuses(route.access, self.head.authorization)

    def _find_room(self, exchange: Exchange, length: int) -> None:
        """Have the body read into shared memory if it is known to be large, else in large pieces."""
        if length >= exchange.model.settings.share_from > 0:
            exchange.buffer = exchange.model.engine.buffer(length)
        if exchange.buffer is not None:
            self.reads_to = exchange.buffer.view[: length + 1]
        else:
            self.reads_to = self.front.quota.for_pieces

    def send_continue(self) -> None:
        """Tell a client that waits for it to send its body, once the earlier answers are written."""
        if self.head.expects_continue and not self.is_answering:
            self.head.expects_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _no_large_body(self) -> Fault:
        """Why a route that is not a script's takes no such body: for tensors, perhaps there is no such model."""
        path = self.head.target()[0].decode("utf-8", "replace")
        missing = metadata.unknown(self.front.models, path)
        return missing or Fault(413, "body_too_large", "this route takes no large body")

    def _spool(self, exchange: Exchange, upload: SpooledBody, body: bytes) -> None:
        most = exchange.model.settings.video_bytes
        if self.body_bytes > most:
            self._stop(self.too_large(most, "video_bytes"), "body")
        if not upload.write(body):
            self.flow.pause_reading()
        if not upload.fits or upload.error is not None:
            self._stop(Fault(507, "no_space", "there is no room for the request body; try again later", 10), "spool")

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body, or refuse it."""
        entry = self.entry
        self.body_bytes += len(body)
        if isinstance(entry, Exchange):
            if entry.upload is not None:
                self._spool(entry, entry.upload, body)
                return
            if not entry.quota.take(len(body), self.body_bytes):
                self._stop(*self.over_quota(entry.quota))
            entry.size = self.body_bytes
            if entry.buffer is None:
                entry.take_in(body)
            else:
                # What came in one read with the end of the request before it.
                entry.buffer.view[self.body_bytes - len(body) : self.body_bytes] = body
                self.reads_to = entry.buffer.view[self.body_bytes : self.head.content_length + 1]
        elif entry is not None:
            if self.body_bytes > SMALL_BODY:
                self._stop(self._no_large_body(), "body")
            entry.body += body
            entry.message_event.set()

    def on_chunk_header(self) -> None:
        self.chunks += 1
        # The last one, which is empty, is not counted.
        if self.chunks > self.limits.max_chunks + 1:
            self._stop(Fault(400, "too_many_chunks", "the request body has too many chunks"), "chunks")

    def on_message_complete(self) -> None:
        """Set the deadline of a request that has come whole, and have it answered."""
        entry = self.entry
        if entry is None:
            return
        if self.chunks:
            self.head.check_trailers()
        if 0 <= self.head.content_length != self.body_bytes:
            self._stop(Fault(400, "bad_http", "the body is not as long as the request says"), "http")
        if isinstance(entry, Exchange):
            entry.arrived = monotonic()
            entry.deadline = entry.arrived + self.head.timeout(entry.model.settings.timeout)
        else:
            entry.more_body = False
            entry.message_event.set()
        self.entry = None
        self.phase, self.reads_to = ANSWERING, self.for_heads
        self.answer(entry)

    def _begin_other(self, method: bytes, path: bytes, query: bytes, keep_alive: bool) -> None:
        """Make the ASGI cycle of a request that is not for the script."""
        if self.head.content_length > SMALL_BODY:
            self._stop(self._no_large_body(), "body")
        scope = self.head.scope(method, path, query)
        scope |= {"server": self.server, "client": self.client, "scheme": self.scheme}
        scope |= {"request_id": self.head.request_id(self.front, self.front.paths.id_header), "began": self.since}
        self.entry = RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive and not self.front.draining,
            on_response=self.cycle_finished,
        )
        self.send_continue()

    # Refusing

    def _stop(self, fault: Fault, limit: str) -> None:
        """Refuse the request being parsed. Raises RequestRefused through the parser."""
        self.refused = RequestRefused(fault, limit)
        raise self.refused

    def refuse(self, fault: Fault, limit: str) -> None:
        """Answer a request that will not be read, and close."""
        if self.phase == CLOSING:
            return
        self.front.metrics.refused[limit] += 1
        self.reads_to = self.for_heads
        entry, self.entry = self.entry, None
        exchange = entry if isinstance(entry, Exchange) else None
        if exchange is not None:
            exchange.release()
            exchange.model.metrics.requests[exchange.route.name, fault.status] += 1
            self.answer_last(exchange.whole_answer(fault))
            return
        self.front.metrics.requests["other", fault.status] += 1
        request_id = self.head.request_id(self.front, self.front.paths.id_header)
        write_error = v2_error if self.head.url.startswith(b"/v2") else neutral_error
        answer = write_error(fault, request_id.decode("latin-1"))
        self.answer_last(answer_bytes(self.front, answer, fault, request_id))


def too_many_connections() -> Fault:
    return Fault(503, "too_many_connections", "this server has too many connections", 1)
