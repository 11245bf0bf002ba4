"""How a connection answers: one request at a time, in order, at the pace its client reads, until it is closed."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from panglot.engine.call import Fault
from panglot.web.front import Front
from panglot.web.http1.exchange import Exchange
from panglot.web.http1.half_closed import BegunTransport
from panglot.web.http1.naming import find_model
from panglot.web.limits import peer

IDLE, HEADERS, BODY, ANSWERING, CLOSING = "idle", "headers", "body", "answering", "closing"
"""The phases of a connection. They tell how far the newest request has been *read*:

    HEADERS -> BODY -> ANSWERING -> IDLE -> HEADERS ...     and from each of them to CLOSING

HEADERS      its head is arriving. A new connection begins here too: `begun` tells whether a byte has come
BODY         its head is complete and accepted, its body is arriving; `protocol` holds it as `entry`
ANSWERING    it has come whole. `current` is being answered, the requests behind it are in `waiting`
IDLE         everything that was asked is answered
CLOSING      nothing more is read. Never left

What surprises: clients may send requests without waiting for answers, so an earlier request may be `current` while a
later one is in HEADERS or BODY, and ANSWERING may go to HEADERS directly. After CLOSING, answers to requests that came
before are still written, `last_answer` after them.
"""
GONE_WITHIN = 0.01
"""Seconds after a client's last byte when we first look whether it has gone; the sweep looks again."""

monotonic = time.monotonic
Entry = Exchange | RequestResponseCycle


class Answering(HttpToolsProtocol):
    """The half of a connection that answers whole requests; `protocol.HttpConnection`, its subclass, reads them."""

    def __init__(self, front: Front, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, state, {}, loop)
        self.front = front
        self.limits = front.settings
        self.phase = HEADERS
        self.since = monotonic()
        self.begun = False
        """Whether a byte of the next request has come."""
        self.current: Entry | None = None
        """The request being answered."""
        self.waiting: deque[Entry] = deque()
        self.last_answer = b""
        """The refusal that ends this connection once the answers before it are written."""
        self.unsent = 0
        """Bytes of answers the client has not read yet, as counted in `Quota.held`."""
        self.held_back = False
        """Whether the next request waits until the client has read the last answer."""
        self.ended = False
        """Whether the client has sent its last byte."""
        self.delivered = 0
        self.delivered_at = self.since
        """How many bytes have reached the client, and when we last saw that more had, or that none were missing."""

    def send_continue(self) -> None:
        """Tell a client that waits for it to send its body."""
        raise NotImplementedError

    # One after the other

    @property
    def is_answering(self) -> bool:
        return self.current is not None or bool(self.waiting) or self.held_back

    def answer(self, entry: Entry) -> None:
        """Answer a request that has come whole, once those before it are answered."""
        if self.current is not None or self.waiting or self.held_back:
            self.waiting.append(entry)
            self.flow.pause_reading()
        else:
            self._begin(entry)

    def _begin(self, entry: Entry) -> None:
        self.current = entry
        if not isinstance(entry, Exchange):
            self._start_asgi_task(entry, self.app)
        elif entry.route.model is not None and entry.route.fields:
            find_model(self.front, entry, lambda fault: self._submit_named(entry, fault))
        elif entry.upload is None:
            self._submit(entry)
        else:
            entry.upload.finish(lambda: self._submit_upload(entry))

    def _submit_named(self, entry: Exchange, fault: Fault | None) -> None:
        """Submit a request whose body has been read for its model's name, or answer that there is no such model."""
        if self.transport is None or self.current is not entry:
            return
        if fault is not None:
            entry.fail(fault)
        else:
            self._submit(entry)

    def _submit(self, entry: Exchange) -> None:
        try:
            fault = entry.model.engine.submit(entry)
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            entry.blunder()
            if entry.id:
                entry.model.engine.cancel(entry)
            return
        if fault is not None:
            entry.fail(fault)

    def _submit_upload(self, entry: Exchange) -> None:
        """Submit a request whose body has been written to its file, or answer that it could not be."""
        if self.transport is None or self.current is not entry or entry.upload is None:
            return
        if entry.upload.error is not None:
            entry.fail(Fault(507, "no_space", "there is no room for the request body; try again later", 10))
            return
        entry.use_upload(entry.upload)
        self._submit(entry)

    def finished(self, entry: Exchange) -> None:
        """Go on to the next request after an answer has been written, or close."""
        entry.release()
        self._next(entry.keep_alive)

    def cycle_finished(self) -> None:
        cycle = self.current
        if isinstance(cycle, RequestResponseCycle):
            self._next(cycle.keep_alive)

    def _next(self, keep_alive: bool) -> None:
        """Answer the next request that waits, read on, or close: whichever is due after an answer."""
        self.current = None
        if self.transport is None or self.transport.is_closing():
            return
        if not keep_alive:
            self.close_after_writing()
        elif self.flow.write_paused:
            # Nothing more is read or run for a client that does not read: its answers would pile up here.
            self.held_back = True
            self.flow.pause_reading()
        elif self.waiting:
            # Not at once: answers given on the spot would nest.
            self.loop.call_soon(self._answer_waiting)
        elif self.phase == CLOSING:
            self.transport.write(self.last_answer)
            self.close_after_writing(unread=True)
        elif self.ended:
            self.close_after_writing()
        else:
            self.flow.resume_reading()
            if self.phase == ANSWERING:
                self.phase, self.since, self.begun = IDLE, monotonic(), False
            elif self.phase == BODY:
                self.send_continue()

    def _answer_waiting(self) -> None:
        if self.waiting and self.current is None and not self.transport.is_closing():
            self._begin(self.waiting.popleft())

    def answer_last(self, answer: bytes) -> None:
        """Write this answer after those to earlier requests of the connection, then close."""
        if self.is_answering:
            self.phase, self.last_answer = CLOSING, answer
        else:
            self.transport.write(answer)
            self.close_after_writing(unread=True)

    def close_after_writing(self, unread: bool = False) -> None:
        """Half-close and read on for a moment: closing with unread input would destroy the answer on its way.

        TLS knows no half-close. There the sweep closes, once all is written and unread input has had its moment.
        """
        self.phase, self.since = CLOSING, monotonic()
        if self.ended:
            self.transport.close()
            return
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        elif not unread and not self.transport.get_write_buffer_size():
            self.transport.close()

    # Clients that read slowly

    def pause_writing(self) -> None:
        super().pause_writing()
        self.owe(self.transport.get_write_buffer_size())
        if isinstance(self.current, Exchange) and self.current.started:
            self.current.model.engine.hold(self.current, True)

    def resume_writing(self) -> None:
        """Go on with the stream, or with the request, that waited for the client to read."""
        super().resume_writing()
        self.owe(0)
        if isinstance(self.current, Exchange) and self.current.started:
            self.current.model.engine.hold(self.current, False)
        elif self.held_back:
            self.held_back = False
            self._next(True)

    def owe(self, unsent: int) -> None:
        """Note how many bytes of its answers the client has not read."""
        self.front.quota.held += unsent - self.unsent
        self.unsent = unsent

    # Ending

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer what has come whole, if a client that sends no more still listens. TLS has no such state.

        A client that stops sending while its stream is under way counts as gone: only the next chunk would tell.
        """
        exchange = self.current if isinstance(self.current, Exchange) else None
        if self.current is None or self.scheme == "https" or (exchange is not None and exchange.started):
            return False
        self.ended = True
        if exchange is not None:
            self.transport = cast(asyncio.Transport, BegunTransport(self.transport))
            self.loop.call_later(GONE_WITHIN, self.drop_if_gone)
        return True

    def drop_if_gone(self) -> None:
        """End a connection whose client has sent its last byte and does not listen either."""
        if self.ended and self.transport is not None and peer.has_reset(self.transport.get_extra_info("socket")):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel whatever is being answered or waits to be."""
        self.phase = CLOSING
        self.owe(0)
        for entry in (self.current, *self.waiting):
            if isinstance(entry, Exchange):
                self.let_go(entry)
        self.waiting.clear()
        cycle = self.current if isinstance(self.current, RequestResponseCycle) else None
        self.cycle = cycle  # type: ignore[assignment]
        super().connection_lost(exc)
        self.current = None
        self.transport = None  # type: ignore[assignment]

    def let_go(self, exchange: Exchange) -> None:
        """Cancel a request whose client has gone."""
        if exchange.id:
            exchange.model.engine.cancel(exchange)
        exchange.release()

    @property
    def idle_since(self) -> float:
        """Since when nothing has been asked on a connection that had its answers; 0 while it is not idle."""
        return self.since if self.phase == IDLE and self.transport is not None and not self._is_heard() else 0.0

    def _is_heard(self) -> bool:
        """Whether the client has sent something that has not been read yet."""
        return peer.unread(self.transport.get_extra_info("socket")) > 0

    def evict(self) -> None:
        """Close this idle connection to make room for a newcomer."""
        self.front.metrics.refused["idle"] += 1
        self.transport.close()

    def close_if_idle(self, now: float, grace: float) -> None:
        """While draining: end an endless stream, and close a connection that has been idle for `grace` seconds."""
        if isinstance(self.current, Exchange) and self.current.route.endless:
            self.current.end_stream()
        quiet = self.phase == IDLE or (self.phase == HEADERS and not self.begun)
        if quiet and now - self.since > grace and self.transport is not None:
            self.transport.close()

    def open_requests(self) -> int:
        """How many requests have begun to arrive and have not been answered and read."""
        arriving = self.phase == BODY or (self.phase == HEADERS and self.begun)
        return len(self.waiting) + (self.current is not None or self.unsent > 0) + arriving

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
