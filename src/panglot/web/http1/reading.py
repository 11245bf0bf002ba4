"""Where the bytes of a connection are read to: a buffer for heads that all share, or the memory a large body lands in.

Its transport is given `ConnectionCallbacks`, so that the kernel writes a large body straight to where the workers
look at it. Bytes that come in one read with the head of such a body are copied there; everything else is parsed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from panglot.engine.call import Fault
from panglot.web.front import Front
from panglot.web.http1.answering import BODY, CLOSING, IDLE, Answering, Entry, monotonic
from panglot.web.http1.exchange import BLUNDER, NO_ROOM, Exchange
from panglot.web.http1.head import RequestHead, RequestRefused
from panglot.web.http1.head_cache import CachedHead
from panglot.web.limits.quota import ByteQuota

HEAD_END = b"\r\n\r\n"
SPLIT_FROM = 4096
"""Bytes of one read from which on a head is parsed without what follows it."""

log = logging.getLogger("panglot.web")


class Reading(Answering):
    """The part of a connection that reads; `protocol.HttpConnection`, its subclass, parses what is no large body."""

    def __init__(self, front: Front, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(front, config, state, loop)
        self.last_data = self.since
        self.head = RequestHead()
        self.entry: Entry | None = None
        """The request whose body is being read."""
        self.body_bytes = 0
        self.cached_head: CachedHead | None = None
        """The head that the client sends time and again."""
        self.for_heads = front.quota.for_heads
        self.reads_to = self.for_heads
        """Where the next bytes go. While a body lands in shared memory: what is left of its buffer, with one byte more,
        so that a read that ends the body is known to be the last without another."""

    def take_again(self, cached: CachedHead, data: bytes) -> None:
        """Take in a whole request whose head has been parsed before."""
        raise NotImplementedError

    def refuse(self, fault: Fault, limit: str) -> None:
        """Answer a request that will not be read, and close."""
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reads_to

    def buffer_updated(self, count: int) -> None:
        """Deal with the bytes that have come to where `get_buffer` said."""
        target = self.reads_to
        if target is self.for_heads:
            if count < SPLIT_FROM:
                data, cached = bytes(target[:count]), self.cached_head
                if cached is not None and count == cached.size and self.phase == IDLE and data.startswith(cached.raw):
                    self.take_again(cached, data)
                else:
                    self.data_received(data)
            else:
                self._split(count)
        elif target is self.front.quota.for_pieces:
            self.data_received(bytes(target[:count]))
        else:
            self._landed(count)

    def _split(self, count: int) -> None:
        """Parse a head alone: the parser copies whatever it passes on, and a large body need not go through it."""
        end = self.front.quota.heads.find(HEAD_END, 0, count) + len(HEAD_END)
        if end < len(HEAD_END):
            end = count
        self.data_received(bytes(self.for_heads[:end]))
        rest = self.for_heads[end:count]
        if not rest:
            return
        entry = self.entry
        if not isinstance(entry, Exchange) or entry.buffer is None or self.phase != BODY:
            self.data_received(bytes(rest))
            return
        own = rest[: self.head.content_length - self.body_bytes]
        entry.buffer.view[self.body_bytes : self.body_bytes + len(own)] = own
        self._landed(len(own))
        if len(own) < len(rest):
            self.data_received(bytes(rest[len(own) :]))

    def _landed(self, count: int) -> None:
        """Count bytes of a body that are where they belong; what is beyond its end belongs to the next request."""
        if self.phase == CLOSING:
            return
        entry, length = self.entry, self.head.content_length
        assert isinstance(entry, Exchange)
        assert entry.buffer is not None
        self.last_data = monotonic()
        begun, view = self.body_bytes, entry.buffer.view
        self.body_bytes = min(begun + count, length)
        if not entry.quota.take(self.body_bytes - begun, self.body_bytes):
            self.refuse(*self.over_quota(entry.quota))
            return
        entry.size = self.body_bytes
        if self.body_bytes < length:
            self.reads_to = view[self.body_bytes : length + 1]
        else:
            beyond = bytes(view[length : begun + count])
            self._all_landed()
            if beyond:
                self.data_received(beyond)

    def _all_landed(self) -> None:
        """Go on to the answer, with a new parser: the old one still waits for the body."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        try:
            self.on_message_complete()
        except RequestRefused as refused:
            self.refuse(refused.fault, refused.limit)
        except Exception:
            log.exception("the server itself failed on a request")
            self.refuse(BLUNDER, "blunder")

    def over_quota(self, quota: ByteQuota) -> tuple[Fault, str]:
        """Why the last bytes of a body could not be held, and the limit that says so."""
        most = quota.largest_body
        return (self.too_large(most), "body") if self.body_bytes > most else (NO_ROOM, "held")

    def too_large(self, most: int, setting: str = "max_body") -> Fault:
        return Fault(413, "body_too_large", f"the request body is larger than {setting}, {most} bytes")


class ConnectionCallbacks(NamedTuple):
    """A buffered protocol in the eyes of uvloop, which does not take the subclass of a streaming one for one.

    A tuple, because uvloop looks these up once and then calls the connection itself.
    """

    get_buffer: Callable[[int], memoryview]
    buffer_updated: Callable[[int], None]
    connection_made: Callable[[Any], None]
    connection_lost: Callable[[Exception | None], None]
    eof_received: Callable[[], bool]
    pause_writing: Callable[[], None]
    resume_writing: Callable[[], None]


def reader(connection: Reading) -> asyncio.BufferedProtocol:
    """The protocol to give to a transport of uvloop."""
    seen = ConnectionCallbacks(
        connection.get_buffer,
        connection.buffer_updated,
        connection.connection_made,
        connection.connection_lost,
        connection.eof_received,
        connection.pause_writing,
        connection.resume_writing,
    )
    return cast(asyncio.BufferedProtocol, seen)
