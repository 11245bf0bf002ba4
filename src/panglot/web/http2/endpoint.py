"""The life of one connection: how it begins, is counted, is ended, and leaves when the server stops."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from panglot.web.front import Front
from panglot.web.grpc.services import Services
from panglot.web.grpc.statuses import UNAVAILABLE
from panglot.web.http2 import frames
from panglot.web.http2.calls import Calls
from panglot.web.http2.frames import (
    ENHANCE_YOUR_CALM,
    EVERY_STREAM,
    INTERNAL_ERROR,
    NO_ERROR,
    ConnectionBroken,
    frame,
    go_away,
)
from panglot.web.http2.framing import COPY_BELOW, Framing, NoPreface
from panglot.web.http2.outflow import Outflow
from panglot.web.http2.public_quota import PublicQuota
from panglot.web.limits import peer
from panglot_worker.line import wire

log = logging.getLogger("panglot.web")
UNSENT = 1 << 18
"""Bytes that the transport holds before it takes no more."""
NOTHING = memoryview(b"")
BEGUN = 1.0
"""Seconds that a frame which has begun to come keeps its connection from counting as idle."""
DRAINING, ALIVE = b"draining", b"are you?"
"""What our pings say: how far the client has come, and whether it is there."""
NO_HTTP2 = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
    b"this port speaks gRPC, over HTTP/2; HTTP/1.1 is spoken on the server's other port\n"
)


class Endpoint(Framing):
    """Our end of a connection; `connection.Http2Connection`, its subclass, acts on frames."""

    def __init__(
        self,
        front: Front,
        services: Services,
        quota: PublicQuota,
        loop: asyncio.AbstractEventLoop,
        everywhere: set[Any],
    ) -> None:
        super().__init__(front.quota.for_pieces, front.settings.max_headers)
        self.front = front
        self.limits = front.settings
        self.loop = loop
        self.outflow = Outflow(loop, self.budget)
        self.calls = Calls(front, services, quota, self.outflow, self._idle)
        self.everywhere = everywhere
        """All connections of the server."""
        self.later = NOTHING
        """Bytes that have come, and wait for the next turn of the loop. Meanwhile nothing more is read."""
        self.transport: Any = None
        self.last = 0
        """The newest stream."""
        self.since = self.heard = time.monotonic()
        """When the present frame began to come, or the connection; and when bytes last came."""
        self.asked = False
        """Whether we asked a silent client if it is there."""
        self.unsent = 0
        """Bytes of answers that the client has not read, as counted in `Quota.held`."""
        self.delivered, self.delivered_at = 0, self.since
        self.leaving = 0.0
        """When the client was told that the server stops."""
        self.last_taken = EVERY_STREAM
        """Streams beyond this one are refused."""

    # Transport

    def connection_made(self, transport: Any) -> None:
        self.transport = self.outflow.transport = transport
        transport.set_write_buffer_limits(high=UNSENT)
        self.everywhere.add(self)
        self.calls.only_public = not self.front.quota.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up the calls of a client that has gone."""
        self.front.quota.leave(self)
        self.everywhere.discard(self)
        self.closing = True
        self.outflow.transport = None
        self.calls.close_all()
        self.transport = None
        self._put_off(NOTHING)
        self.owe(0)

    def buffer_updated(self, count: int) -> None:
        """Act on the bytes that have come; end the connection on what may not be."""
        if self.closing:
            return
        self.heard = time.monotonic()
        if not self.is_within:
            self.since = self.heard
        view = self.reads_to[:count]
        if self.later:
            self._put_off(memoryview(bytes(self.later) + bytes(view)))
        else:
            self._act(bytes(view) if count < COPY_BELOW else view)

    def _act(self, data: wire.Buffer) -> None:
        """Act on bytes that have come, as many as fit into a turn of the loop."""
        self.calls.now = time.monotonic()
        used = len(data)
        try:
            used = self.read(data)
        except NoPreface:
            self.outflow.write(NO_HTTP2)
            self._close()
        except ConnectionBroken as broken:
            self.end(broken.code, broken.why)
        except Exception:
            log.exception("the server itself failed on a connection of gRPC")
            self.end(INTERNAL_ERROR, "the server itself failed")
        if self.closing:
            return
        if used < len(data):
            # What is kept is a copy: all connections read to the same place.
            self._put_off(self.later[used:] if data is self.later else memoryview(bytes(data[used:])))
        elif self.later:
            self._put_off(NOTHING)
        if self.calls.turned_away and not self.leaving:
            self.front.metrics.refused["connections"] += 1
            self.leave()
            self.take_no_more()

    def _put_off(self, rest: memoryview) -> None:
        """Keep bytes for the next turn of the loop, in place of those kept before. Meanwhile none are read."""
        had, self.later = self.later, rest
        self.front.quota.held += len(rest) - len(had)
        if self.transport is None or self.transport.is_closing():
            return
        if not had and rest:
            self.transport.pause_reading()
        elif had and not rest:
            self.transport.resume_reading()
        if rest:
            self.loop.call_soon(self._take_a_turn)

    def _take_a_turn(self) -> None:
        if self.later and not self.closing:
            self._act(self.later)

    def eof_received(self) -> bool:
        """Go: a client of HTTP/2 that sends no more cannot open windows either."""
        return False

    def pause_writing(self) -> None:
        self.outflow.paused = True
        self.note_unsent()

    def resume_writing(self) -> None:
        self.outflow.paused = False
        self.outflow.go_on()
        self.note_unsent()
        self.calls.go_on()

    def note_unsent(self) -> None:
        """Count what the client has not read of its answers."""
        if self.transport is not None:
            self.owe(self.outflow.backlog + self.transport.get_write_buffer_size())

    def owe(self, unsent: int) -> None:
        self.front.quota.held += unsent - self.unsent
        self.unsent = unsent

    # Ending

    def end(self, code: int, why: str) -> None:
        """Tell the client that the connection ends, and why; what has no answer yet gets none."""
        if self.transport is None or self.closing:
            return
        if code != NO_ERROR:
            self.front.metrics.refused["http2"] += 1
        self.outflow.write(go_away(self.last, code, why))
        self._close()

    def _close(self) -> None:
        """Half-close and read on for a moment: closing with unread input would destroy the last words on their way."""
        self.closing = True
        self.calls.close_all()
        self._put_off(NOTHING)
        self.outflow.flush()
        self.outflow.transport = None
        self.since = time.monotonic()
        transport = self.transport
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def leave(self) -> None:
        """Tell the client that the server stops. Calls that are on their way are still taken: see `take_no_more`."""
        if self.leaving or self.transport is None or self.closing:
            return
        self.leaving = time.monotonic()
        self.outflow.write(go_away(EVERY_STREAM, NO_ERROR, "the server stops") + frame(frames.PING, 0, 0, DRAINING))

    def take_no_more(self) -> None:
        """Say which call was the last, and close when all have their answers."""
        if self.last_taken == EVERY_STREAM:
            self.last_taken = self.last
            self.outflow.write(go_away(self.last, NO_ERROR, "the server stops"))
            self._idle()

    @property
    def is_last_told(self) -> bool:
        """Whether the client knows that no further call is taken, or the connection is over."""
        return self.last_taken != EVERY_STREAM or self.closing

    def end_what_listens(self) -> None:
        """End calls on which nothing is being said, while the server stops."""
        for stream in [stream for stream in self.calls.streams.values() if stream.is_listening]:
            self.calls.refuse(stream, UNAVAILABLE, "the server is stopping")

    def _idle(self) -> None:
        """Close if there are no calls and there will be none."""
        if self.last_taken != EVERY_STREAM and not self.calls.streams and not self.closing and self.transport:
            self._close()

    # As the room knows it

    @property
    def idle_since(self) -> float:
        """Since when nothing has been asked that needs a token, where one is needed; 0 while something is.

        Whoever only watches, or has another public call under way, gives way to newcomers as an idle connection does.
        """
        if self.calls.is_claimed or self.transport is None or self.closing or self.later or not self.settled:
            return 0.0
        if self.is_within and time.monotonic() - self.since < BEGUN:
            return 0.0
        return 0.0 if peer.unread(self.transport.get_extra_info("socket")) else self.calls.idle_since

    def turn_away(self) -> None:
        """Close a connection beyond the limit, unless it is being answered."""
        if not self.calls.is_claimed:
            self.front.metrics.refused["connections"] += 1
            self.end(ENHANCE_YOUR_CALM, "too many connections")

    def evict(self) -> None:
        """Close this idle connection to make room for a newcomer."""
        self.front.metrics.refused["idle"] += 1
        is_stuck = self.outflow.paused
        self.end(NO_ERROR, "idle")
        if is_stuck:
            # It reads nothing, and would keep what it has not read for as long as it is given.
            self.abort()
