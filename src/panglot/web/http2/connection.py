"""One connection of HTTP/2 that carries calls of gRPC, within limits: how it begins, is counted, and closes.

    frame_reader    bytes -> frames                     outflow     messages -> frames, within the client's windows
    frame_actions   what each frame does                calls       a call from its headers to its end
    call_head       header blocks -> heads of calls     bidi_call   calls with many messages each way
    inbox           data -> messages, which it owns     answer_task answers that need a task
    budget          what a client may send for nothing  watch       calls that only listen
    pace            limits on time, swept by the server

A small inference goes through all of it without a task, a future or a timer. An error of a client ends its stream or
its connection with the code that RFC 9113 has for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from panglot.web.front import Front
from panglot.web.grpc.services import Services
from panglot.web.grpc.statuses import UNAVAILABLE
from panglot.web.http2 import frames
from panglot.web.http2.budget import Budget
from panglot.web.http2.calls import Calls
from panglot.web.http2.frame_actions import DRAINING, FrameActions
from panglot.web.http2.frame_reader import FrameReader, NoPreface
from panglot.web.http2.frames import (
    ENHANCE_YOUR_CALM,
    EVERY_STREAM,
    INTERNAL_ERROR,
    NO_ERROR,
    ConnectionBroken,
    frame,
    go_away,
)
from panglot.web.http2.outflow import Outflow
from panglot.web.http2.public_quota import PublicQuota
from panglot.web.limits import peer
from panglot_worker.line import wire

log = logging.getLogger("panglot.web")
UNSENT = 1 << 18
"""Bytes that the transport holds before it takes no more."""
COPY_BELOW = 1 << 15
"""Bytes of a read that are handled as `bytes`; slices of more are views."""
NOTHING = memoryview(b"")
BEGUN = 1.0
"""Seconds for which a connection with an unfinished frame does not count as idle."""
NO_HTTP2 = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
    b"this port speaks gRPC, over HTTP/2; HTTP/1.1 is spoken on the server's other port\n"
)


class Http2Connection(asyncio.BufferedProtocol):
    """The connection of one client. It has a reader of frames, the calls that they make, and an outflow of answers."""

    def __init__(
        self,
        front: Front,
        services: Services,
        quota: PublicQuota,
        loop: asyncio.AbstractEventLoop,
        connections: set[Http2Connection],
    ) -> None:
        self.front = front
        self.limits = front.settings
        self.loop = loop
        self.connections = connections
        """All connections of the server."""
        self.budget = Budget()
        self.outflow = Outflow(loop, self.budget)
        self.calls = Calls(front, services, quota, self.outflow, self._close_if_done)
        most = front.settings.max_headers
        self.actions = FrameActions(self.calls, self.outflow, self.budget, most, self._drained)
        self.reader = FrameReader(self.actions, self.budget, most)
        self.reads_to = front.quota.for_pieces
        self.deferred = NOTHING
        """Bytes that have come, and wait for the next turn of the loop. Meanwhile nothing more is read."""
        self.transport: Any = None
        self.closing = False
        """Whether the last frame is written, and nothing more is read."""
        self.since = self.last_data = time.monotonic()
        """When the present frame began to come, or the connection; and when bytes last came."""
        self.pinged = False
        """Whether a PING has asked a silent client if it is there."""
        self.unsent = 0
        """Bytes of answers that the client has not read, as counted in `Quota.used`."""
        self.delivered, self.delivered_at = 0, self.since
        self.stopping_since = 0.0
        """When the client was told that the server stops."""

    # Bytes

    def connection_made(self, transport: Any) -> None:
        self.transport = self.outflow.transport = transport
        transport.set_write_buffer_limits(high=UNSENT)
        self.connections.add(self)
        self.calls.only_public = not self.front.quota.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the calls of a client that has disconnected."""
        self.front.quota.remove(self)
        self.connections.discard(self)
        self._stop_reading()
        # Before the calls are closed: what they still write is dropped.
        self.outflow.transport = None
        self.calls.close_all()
        self.transport = None
        # Gives the bytes back to the quota. There is no transport any more that could read on.
        self._defer(NOTHING)
        self.count_unsent(0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reads_to

    def buffer_updated(self, count: int) -> None:
        """Act on the bytes that have come, or close the connection where they break the protocol."""
        if self.closing:
            return
        self.last_data = time.monotonic()
        # The clock of a frame starts with its first byte: a byte now and then does not set it back.
        if not self.reader.is_within:
            self.since = self.last_data
        view = self.reads_to[:count]
        # Bytes may come although reading is paused: those that wait are older and go first.
        if self.deferred:
            self._defer(memoryview(bytes(self.deferred) + bytes(view)))
        else:
            self._read(bytes(view) if count < COPY_BELOW else view)

    def _read(self, data: wire.Buffer) -> None:
        """Act on bytes that have come, as many as fit into a turn of the loop."""
        self.calls.now = time.monotonic()
        used = len(data)
        try:
            used = self.reader.read(data)
        except NoPreface:
            self.outflow.write(NO_HTTP2)
            self._half_close()
        except ConnectionBroken as broken:
            self.close(broken.code, broken.why)
        except Exception:
            log.exception("the server itself failed on a connection of gRPC")
            self.close(INTERNAL_ERROR, "the server itself failed")
        if self.closing:
            return
        if used < len(data):
            # Copied, because all connections read to the same memory: the next read of another one overwrites it.
            self._defer(self.deferred[used:] if data is self.deferred else memoryview(bytes(data[used:])))
        elif self.deferred:
            self._defer(NOTHING)
        # After the read, so that the refusal of the call itself is sent before the GOAWAY.
        if self.calls.turned_away and not self.stopping_since:
            self.front.metrics.refused["connections"] += 1
            self.announce_stop()
            self.refuse_new_calls()

    def _defer(self, rest: memoryview) -> None:
        """Keep these bytes for the next turn of the loop, instead of those kept before. Meanwhile none are read."""
        had, self.deferred = self.deferred, rest
        self.front.quota.used += len(rest) - len(had)
        if self.transport is None or self.transport.is_closing():
            return
        if not had and rest:
            self.transport.pause_reading()
        elif had and not rest:
            self.transport.resume_reading()
        if rest:
            self.loop.call_soon(self._read_deferred)

    def _read_deferred(self) -> None:
        # This may be scheduled twice, and the first run may have read everything or closed the connection.
        if self.deferred and not self.closing:
            self._read(self.deferred)

    def eof_received(self) -> bool:
        """Close: a client of HTTP/2 that sends no more cannot open windows either."""
        return False

    def pause_writing(self) -> None:
        self.outflow.paused = True
        self.note_unsent()

    def resume_writing(self) -> None:
        self.outflow.paused = False
        self.outflow.send_ready()
        self.note_unsent()
        # Last: whether waiting calls may run depends on how much could be sent just now.
        self.calls.run_deferred()

    def note_unsent(self) -> None:
        """Count what the client has not read of its answers."""
        if self.transport is not None:
            self.count_unsent(self.outflow.backlog + self.transport.get_write_buffer_size())

    def count_unsent(self, unsent: int) -> None:
        self.front.quota.used += unsent - self.unsent
        self.unsent = unsent

    # Closing

    def close(self, code: int, why: str) -> None:
        """Tell the client that the connection closes, and why; calls without an answer get none."""
        if self.transport is None or self.closing:
            return
        if code != NO_ERROR:
            self.front.metrics.refused["http2"] += 1
        # Calls beyond the number in GOAWAY did not run, and the client may make them again elsewhere.
        self.outflow.write(go_away(self.actions.last, code, why))
        self._half_close()

    def _half_close(self) -> None:
        """Half-close and read on for a moment: closing with unread input would destroy the last frames on their way."""
        self._stop_reading()
        self.calls.close_all()
        self._defer(NOTHING)
        # By hand: the flush that `write` has scheduled would find no transport any more.
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

    def _stop_reading(self) -> None:
        self.closing = self.reader.is_stopped = True

    # While the server stops

    def announce_stop(self) -> None:
        """Tell the client that the server stops. Calls that are on their way are still answered.

        The PING tells when there can be no more of them: its echo comes behind every call that the client made before
        it knew. A client that does not echo is given a second (`pace`).
        """
        if self.stopping_since or self.transport is None or self.closing:
            return
        self.stopping_since = time.monotonic()
        # RFC 9113, 6.8: the largest number first. Calls that cross this frame on their way are accepted.
        self.outflow.write(go_away(EVERY_STREAM, NO_ERROR, "the server stops") + frame(frames.PING, 0, 0, DRAINING))

    def _drained(self) -> None:
        if self.stopping_since:
            self.refuse_new_calls()

    def refuse_new_calls(self) -> None:
        """Tell the client which call was the last, and close when all have their answers."""
        if self.actions.last_accepted == EVERY_STREAM:
            self.actions.refuse_new()
            self._close_if_done()

    @property
    def refuses_new_calls(self) -> bool:
        """Whether the client knows that no further call is answered, or the connection is over."""
        return self.actions.last_accepted != EVERY_STREAM or self.closing

    def end_listening_calls(self) -> None:
        """End the calls that only wait for news, because the server stops."""
        # A list of its own, because `refuse` removes streams from the dictionary.
        for stream in [stream for stream in self.calls.streams.values() if stream.only_listens]:
            self.calls.refuse(stream, UNAVAILABLE, "the server is stopping")

    def _close_if_done(self) -> None:
        """Close if there are no calls and there will be none."""
        accepts = self.actions.last_accepted == EVERY_STREAM
        if not accepts and not self.calls.streams and not self.closing and self.transport:
            self._half_close()

    # For the quota

    @property
    def idle_since(self) -> float:
        """Since when the connection has had no call that needs a token, where one is needed; 0 while it has one.

        A client that only watches, or makes other public calls, gives way to newcomers as an idle connection does.
        """
        if self.transport is None or self.closing or self.deferred or not self.reader.settled:
            return 0.0
        if self.calls.has_authorized_call:
            return 0.0
        if self.reader.is_within and time.monotonic() - self.since < BEGUN:
            return 0.0
        # A call may lie unread in the kernel.
        return 0.0 if peer.unread(self.transport.get_extra_info("socket")) else self.calls.idle_since

    def turn_away(self) -> None:
        """Close a connection beyond the limit, unless it is being answered."""
        if not self.calls.has_authorized_call:
            self.front.metrics.refused["connections"] += 1
            self.close(ENHANCE_YOUR_CALM, "too many connections")

    def evict(self) -> None:
        """Close this idle connection, so that another client finds a free one."""
        self.front.metrics.refused["idle"] += 1
        is_stuck = self.outflow.paused
        self.close(NO_ERROR, "idle")
        if is_stuck:
            # The client reads nothing, and half-closing would wait for it to read.
            self.abort()
