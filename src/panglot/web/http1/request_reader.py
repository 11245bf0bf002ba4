"""From the bytes of one connection to whole requests, within limits.

httptools parses heads and small bodies, and calls the reader back. A large body does not go through the parser: the
kernel writes it straight into the memory that its worker reads.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import httptools

from panglot.engine.call import Fault
from panglot.web.http1 import admission
from panglot.web.http1.answer_queue import NO_SPACE, AnswerQueue, OpenRequest
from panglot.web.http1.exchange import BLUNDER, Exchange, refusal_without_route
from panglot.web.http1.heads.first_line import FirstLine
from panglot.web.http1.heads.head_cache import HEAD_END, MOST_TRIES, CachedHead, cacheable
from panglot.web.http1.heads.request_head import RequestHead, RequestRefused
from panglot.web.http1.job_exchange import preferred_exchange
from panglot.web.http1.phases import ANSWERING, BODY, CLOSING, HEADERS, IDLE
from panglot.web.limits.spool import SpooledBody
from panglot.web.paths import Destination

if TYPE_CHECKING:
    from panglot.web.http1.connection import HttpConnection

CHUNK_OVERHEAD = 32
SPLIT_FROM = 4096
"""Bytes of one read from which on a head is parsed without what follows it."""

log = logging.getLogger("panglot.web")
monotonic = time.monotonic


class RequestReader:
    """Reads the requests of a connection one after the other, and adds each to its queue of answers."""

    def __init__(self, connection: HttpConnection, answers: AnswerQueue) -> None:
        self.connection = connection
        self.answers = answers
        self.front = connection.front
        self.limits = connection.limits
        self.parser: Any = self._new_parser()
        self.parser_waits = False
        """Whether the parser has read the head of the newest request, and not its large body."""
        self.phase = HEADERS
        self.since = self.last_data = monotonic()
        """When the phase began, and when bytes last came."""
        self.begun = False
        """Whether a byte of the next request has come."""
        self.head = RequestHead()
        self.request: OpenRequest | None = None
        """The request whose body is being read."""
        self.body_bytes = 0
        self.chunks = 0
        self.arrived = 0
        """Bytes that came after the read in which the request, or later its body, began."""
        self.count = 0
        """Requests that have begun on this connection."""
        self.first_line = FirstLine(self.limits.max_request_line)
        self.cached_head: CachedHead | None = None
        """The head that the client sends time and again."""
        self.heads_cached = 0
        self.for_heads = self.front.quota.for_heads
        self.reads_to = self.for_heads
        """Where the next bytes go: to memory that all connections share or, while a large body comes, to the rest of
        its buffer. This has one byte more than the body: a read that does not fill it has emptied the kernel."""

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        # Requests that follow one with `Connection: close` are ignored, and are no error.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    # States

    def stop(self) -> None:
        """Read no further request."""
        self.phase, self.since = CLOSING, monotonic()

    def answered(self) -> None:
        """Go on after everything that came whole has been answered."""
        if self.phase == ANSWERING:
            self.phase, self.since, self.begun = IDLE, monotonic(), False
        elif self.phase == BODY:
            self._send_continue()

    def close(self) -> None:
        """Cancel the request being read: the connection is lost."""
        self.phase = CLOSING
        self.reads_to = self.for_heads
        request, self.request = self.request, None
        if isinstance(request, Exchange):
            request.cancel()
        # Both hold the reader. Without them, a lost connection is freed at once and not by the garbage collector, which
        # would let the heads of thousands of lost connections pile up.
        self.parser = None
        del self.connection

    # Bytes

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reads_to

    def buffer_updated(self, count: int) -> None:
        """Read the bytes that have come to where `get_buffer` said."""
        target = self.reads_to
        if target is self.for_heads:
            if count < SPLIT_FROM:
                data, cached = bytes(target[:count]), self.cached_head
                if cached is not None and count == cached.size and self.phase == IDLE and data.startswith(cached.raw):
                    if cached.is_large:
                        self._repeat_large(cached)
                    else:
                        self._repeat(cached, data)
                else:
                    self.feed(data)
            else:
                self._split(count)
        elif target is self.front.quota.for_pieces:
            self.feed(bytes(target[:count]))
        else:
            self._landed(count)

    def feed(self, data: bytes) -> None:
        """Feed the parser, which calls the methods below, and answer whatever stops it."""
        self.last_data = monotonic()
        if self.phase == CLOSING:
            return
        whole, count = self.phase == IDLE, self.count
        if whole:
            self.phase, self.since, self.arrived = HEADERS, self.last_data, 0
        self.arrived += len(data)
        if (not self.begun or self.first_line.partial) and self.first_line.is_of_rtsp(data):
            self.head = RequestHead()
            self.refuse(admission.NOT_SPOKEN, "http")
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refuse(admission.NO_UPGRADE, "upgrade")
        except httptools.HttpParserError as error:
            # The parser keeps what a callback raised as the context of its own error.
            refused = error.__context__
            if isinstance(refused, RequestRefused):
                # Its traceback holds the frame of this call, which holds it: garbage that would pile up.
                refused.__traceback__ = None
                self.refuse(refused.fault, refused.limit)
            elif isinstance(error, httptools.HttpParserCallbackError):
                log.error("the server itself failed on a request", exc_info=refused)
                self.refuse(BLUNDER, "blunder")
            else:
                self.refuse(Fault(400, "bad_http", "this is not a valid HTTP/1.1 request"), "http")
        else:
            self._check_overhead()
            if whole and self.heads_cached < MOST_TRIES and self.count == count + 1:
                self._cache_head(data)

    def _check_overhead(self) -> None:
        """Bound the bytes that the parser takes without calling back: unfinished heads, and extensions of chunks."""
        if self.phase == HEADERS:
            if self.arrived > self.limits.max_headers + self.limits.max_request_line:
                self.refuse(Fault(431, "headers_too_large", "the request's head is too large"), "headers")
        elif self.phase == BODY and self.head.content_length < 0:
            useful = self.body_bytes + CHUNK_OVERHEAD * self.chunks
            if self.arrived > useful + admission.SMALL_BODY:
                self.refuse(Fault(400, "bad_http", "the body's chunks carry too much besides data"), "chunks")

    # Large bodies, which the parser does not see

    def _split(self, count: int) -> None:
        """Parse a head alone: the parser copies whatever it passes on, and a large body need not go through it."""
        heads, cached = self.front.quota.heads, self.cached_head
        if cached is not None and cached.is_large and self.phase == IDLE and heads.startswith(cached.raw, 0, count):
            end = cached.size
            self._repeat_large(cached)
        else:
            head_end = heads.find(HEAD_END, 0, count)
            end = head_end + len(HEAD_END) if head_end >= 0 else count
            self.feed(bytes(self.for_heads[:end]))
        rest = self.for_heads[end:count]
        if not rest:
            return
        request = self.request
        # The head decides: only now is it known whether its body has a buffer, or the request was refused.
        if not isinstance(request, Exchange) or request.buffer is None or self.phase != BODY:
            self.feed(bytes(rest))
            return
        own = rest[: self.head.content_length - self.body_bytes]
        request.buffer.view[self.body_bytes : self.body_bytes + len(own)] = own
        self._landed(len(own))
        if len(own) < len(rest):
            self.feed(bytes(rest[len(own) :]))

    def _landed(self, count: int) -> None:
        """Count bytes of a body that are in its buffer; what is beyond its end belongs to the next request."""
        self.last_data = monotonic()
        if self.phase == CLOSING:
            return
        exchange, length = self.request, self.head.content_length
        assert isinstance(exchange, Exchange)
        assert exchange.buffer is not None
        begun, view = self.body_bytes, exchange.buffer.view
        self.body_bytes = min(begun + count, length)
        if not exchange.quota.take(self.body_bytes - begun, self.body_bytes):
            self.refuse(*admission.over_quota(exchange.quota, self.body_bytes))
            return
        exchange.size = self.body_bytes
        if self.body_bytes < length:
            self.reads_to = view[self.body_bytes : length + 1]
        else:
            # Copied first: once the request is submitted, the buffer is no longer ours to read.
            beyond = bytes(view[length : begun + count])
            self._all_landed()
            if beyond:
                self.feed(beyond)

    def _all_landed(self) -> None:
        """Go on to the answer, with a new parser where the old one has read the head and waits for the body."""
        if self.parser_waits:
            self.parser = self._new_parser()
        try:
            self.on_message_complete()
        except RequestRefused as refused:
            self.refuse(refused.fault, refused.limit)
        except Exception:
            log.exception("the server itself failed on a request")
            self.refuse(BLUNDER, "blunder")

    # Heads that come again

    def _cache_head(self, data: bytes) -> None:
        """Remember the head of a request that came whole, or all but its large body, alone and in one read."""
        exchange = self.request if self.phase == BODY else self.answers.current
        if self.phase == HEADERS or not isinstance(exchange, Exchange) or self.connection.reserved:
            return  # In HEADERS, `self.head` is the cut head of a further request.
        cached = cacheable(self.front, self.head, self.parser.get_method(), exchange, data, self.phase == BODY)
        if cached is not None:
            self.heads_cached += 1
            self.cached_head = cached

    def _begin_again(self, cached: CachedHead) -> Exchange | None:
        """The exchange of a request whose head has been parsed before; None where it must be parsed once more."""
        if self.count + 1 >= self.limits.max_requests_per_connection or cached.paths is not self.front.paths:
            return None
        holder, now = cached.holder, monotonic()
        lines = holder.readmit(cached.key, now) if holder is not None else b""
        if lines is None:  # The key has changed, or is at its limits.
            return None
        self.count, self.head, self.begun = self.count + 1, cached.head, True
        self.last_data = self.since = now
        exchange = self._exchange(cached.destination, cached.worker_head)
        if holder is not None:
            # As `count_for` does, which would count it again.
            exchange.holder = exchange.counted_for = holder
            exchange.lines += lines
        return exchange

    def _repeat(self, cached: CachedHead, data: bytes) -> None:
        """Have a request answered whose head has been parsed before."""
        body, quota = data[len(cached.raw) :], cached.destination.model.quota
        if not quota.take(len(body), len(body)):
            self.feed(data)
            return
        exchange = self._begin_again(cached)
        if exchange is None:
            quota.used -= len(body)
            self.feed(data)
            return
        exchange.size, exchange.arrived = len(body), self.since
        exchange.deadline = self.since + cached.head.timeout(exchange.model.settings.timeout)
        if body:
            exchange.pieces.append(body)
        self.phase = ANSWERING
        self.answers.add(exchange)

    def _repeat_large(self, cached: CachedHead) -> None:
        """Read the large body of a request whose head has been parsed before."""
        model, length = cached.destination.model, cached.head.content_length
        buffer = None if admission.lacks_memory(model.quota, length) else model.engine.buffer(length)
        exchange = self._begin_again(cached) if buffer is not None else None  # Last: it counts for the key.
        if buffer is None or exchange is None:
            if buffer is not None:
                buffer.release()
            self.feed(cached.raw)
            return
        self.body_bytes = self.chunks = self.arrived = 0
        exchange.buffer = buffer
        self.phase, self.request, self.parser_waits = BODY, exchange, False
        self.reads_to = buffer.view[: length + 1]

    # Callbacks of the parser. They raise RequestRefused, which ends the parsing; `feed` answers it.

    def on_message_begin(self) -> None:
        self.head = RequestHead()
        self.body_bytes = self.chunks = self.arrived = 0
        self.begun = True
        if self.phase != CLOSING:
            self.phase, self.since = HEADERS, monotonic()

    def on_url(self, url: bytes) -> None:
        self.head.url += url
        if len(self.head.url) > self.limits.max_request_line:
            raise RequestRefused(Fault(414, "uri_too_long", "the request line is too long"), "request_line")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head.add(name, value, self.limits)

    def on_headers_complete(self) -> None:
        """Check the head, find the route, and make the request that the body is read into."""
        if self.phase == CLOSING:
            return
        head, parser, front = self.head, self.parser, self.front
        self.arrived, self.parser_waits, self.count = 0, True, self.count + 1
        version = parser.get_http_version()
        minor = 1 if version == "1.1" else admission.check_old_version(version, head)
        if parser.should_upgrade():
            raise RequestRefused(admission.NO_UPGRADE, "upgrade")
        head.check(front, minor)
        keep_alive = minor == 1 and parser.should_keep_alive() and self.count < self.limits.max_requests_per_connection
        method = head.method = parser.get_method()
        path, query = head.target(front.paths.raw)
        destination = front.paths.find(method, path, query, head.headers)
        if head.foreign:
            head.check_foreign(front, may_visit=destination is None and method in (b"GET", b"HEAD"))
        self.phase, reserved = BODY, self.connection.reserved
        if reserved and not front.is_public(path):
            raise RequestRefused(admission.TOO_MANY_CONNECTIONS, "connections")
        if destination is None:
            admission.check_page_body(front, head, head.content_length)
            scope = head.scope(method, path, query)
            scope |= {"request_id": head.request_id(front, front.paths.id_header), "began": self.since}
            self.request = self.connection.new_cycle(scope, keep_alive and not reserved and not front.draining)
        else:
            exchange = self._exchange(destination, head.for_worker(destination, path, query, self.connection))
            exchange.keep_alive, exchange.minor = keep_alive, minor
            # Before anything can be refused: a refusal is answered as the route's platform does.
            self.request = exchange
            admission.admit(front, head, method, exchange)
            self._choose_memory(exchange, head.content_length)
        self._send_continue()

    def _exchange(self, destination: Destination, worker_head: bytes) -> Exchange:
        """The exchange of a request whose head is complete; `worker_head` is what the worker gets of it."""
        head, contract = self.head, destination.model.contract
        if head.prefer or destination.route.job is not None:
            exchange = preferred_exchange(self.connection, destination, self.since, head)
        else:
            exchange = Exchange(self.connection, self.front, destination, self.since)
        exchange.request_id = head.request_id(self.front, contract.id_header)
        exchange.method, exchange.trace = head.method, head.trace
        if head.origin and self.front.origins:
            exchange.lines = self.front.origins.lines(head.origin)
        if contract.id_header:
            exchange.lines += b"%s: %s\r\n" % (contract.id_header, exchange.request_id)
        exchange.head = exchange.request_id + worker_head
        return exchange

    def _choose_memory(self, exchange: Exchange, length: int) -> None:
        """Choose where the body goes: to a file, into shared memory if it is known to be large, else into pieces."""
        if exchange.goes_to_file:
            exchange.upload = self.front.spool.begin()
            exchange.upload.on_space = self.connection.flow.resume_reading
            self.reads_to = self.front.quota.for_pieces
            return
        if 0 <= length < SPLIT_FROM:
            return
        if length >= exchange.model.settings.share_from > 0:
            exchange.buffer = exchange.model.engine.buffer(length)
        buffer, pieces = exchange.buffer, self.front.quota.for_pieces
        self.reads_to = buffer.view[: length + 1] if buffer is not None else pieces

    def _send_continue(self) -> None:
        """Tell a client that waits for it to send its body, once the earlier answers are written."""
        if self.head.expects_continue and not self.answers.is_busy:
            self.head.expects_continue = False
            self.connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Add a piece to the body, or refuse it."""
        request = self.request
        self.body_bytes += len(body)
        if isinstance(request, Exchange):
            if request.upload is not None:
                self._spool(request, request.upload, body)
                return
            if not request.quota.take(len(body), self.body_bytes):
                raise RequestRefused(*admission.over_quota(request.quota, self.body_bytes))
            request.size = self.body_bytes
            if request.buffer is None:
                request.add_piece(body)
            else:
                # These bytes came in one read with the end of the request before, so they went through the parser.
                request.buffer.view[self.body_bytes - len(body) : self.body_bytes] = body
                self.reads_to = request.buffer.view[self.body_bytes : self.head.content_length + 1]
        elif request is not None:
            admission.check_page_body(self.front, self.head, self.body_bytes)
            request.body += body
            request.message_event.set()

    def _spool(self, exchange: Exchange, upload: SpooledBody, body: bytes) -> None:
        admission.check_spooled(exchange, self.body_bytes)
        if not upload.write(body):
            self.connection.flow.pause_reading()
        if not upload.fits or upload.error is not None:
            raise RequestRefused(NO_SPACE, "spool")

    def on_chunk_header(self) -> None:
        self.chunks += 1
        # The last one, which is empty, is not counted.
        if self.chunks > self.limits.max_chunks + 1:
            raise RequestRefused(Fault(400, "too_many_chunks", "the request body has too many chunks"), "chunks")

    def on_message_complete(self) -> None:
        """Set the deadline of a request that has come whole, and have it answered."""
        request = self.request
        if request is None:
            return
        if self.chunks:
            self.head.check_trailers()
        if 0 <= self.head.content_length != self.body_bytes:
            raise RequestRefused(Fault(400, "bad_http", "the body is not as long as the request says"), "http")
        if isinstance(request, Exchange):
            request.arrived = monotonic()
            request.deadline = request.arrived + self.head.timeout(request.model.settings.timeout)
        else:
            request.more_body = False
            request.message_event.set()
        self.request = None
        self.phase, self.reads_to = ANSWERING, self.for_heads
        self.answers.add(request)

    # Refusing

    def refuse(self, fault: Fault, limit: str) -> None:
        """Answer the request being read with a fault, read nothing more, and close once the answer is written."""
        if self.phase == CLOSING:
            return
        self.front.metrics.refused[limit] += 1
        self.reads_to = self.for_heads
        request, self.request = self.request, None
        if isinstance(request, Exchange):
            request.release()
            request.model.metrics.requests[request.route.name, fault.status] += 1
            self.answers.add_last(request.whole_answer(fault))
            return
        self.answers.add_last(refusal_without_route(self.front, self.head, fault))
