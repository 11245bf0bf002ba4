"""The answers of one connection: one request at a time, in the order they came, at the pace the client reads."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from panglot.engine.call import Fault
from panglot.web.http1.exchange import Exchange
from panglot.web.http1.job_exchange import JobExchange
from panglot.web.http1.naming import find_model
from panglot.web.http1.phases import CLOSING

if TYPE_CHECKING:
    from panglot.web.http1.connection import HttpConnection

OpenRequest = Exchange | RequestResponseCycle
"""A request without its whole answer: one for the script, or one that the ASGI app answers."""
NO_SPACE = Fault(507, "no_space", "there is no space on disk for the request body; try again later", 10)


class AnswerQueue:
    """The requests of a connection that have come whole. At most one of them is being answered."""

    __slots__ = ("connection", "current", "last_answer", "waiting", "waits_for_client")

    def __init__(self, connection: HttpConnection) -> None:
        self.connection = connection
        self.current: OpenRequest | None = None
        """The request being answered."""
        self.waiting: deque[OpenRequest] = deque()
        """The requests behind it, oldest first."""
        self.last_answer = b""
        """The refusal that ends the connection once the answers before it are written."""
        self.waits_for_client = False
        """Whether the next request waits until the client has read the last answer."""

    @property
    def is_busy(self) -> bool:
        return self.current is not None or bool(self.waiting) or self.waits_for_client

    def add(self, request: OpenRequest) -> None:
        """Answer a request that has come whole, once those before it are answered."""
        if self.current is not None or self.waiting or self.waits_for_client:
            self.waiting.append(request)
            # Requests of the same read still join the queue, but nothing further is read: the queue stays short.
            self.connection.flow.pause_reading()
        else:
            self._begin(request)

    def add_last(self, answer: bytes) -> None:
        """Write this answer after those to earlier requests of the connection, then close."""
        connection = self.connection
        if self.is_busy:
            # By the stopped reader `_next` knows that the last answer is due once the queue is empty.
            connection.reader.stop()
            self.last_answer = answer
        else:
            connection.transport.write(answer)
            connection.close_after_writing(unread=True)

    def _begin(self, request: OpenRequest) -> None:
        # First: the engine may answer before `submit` returns, and `_next` then clears it again.
        self.current = request
        if not isinstance(request, Exchange):
            self.connection.run_app(request)
        elif isinstance(request, JobExchange):
            request.begin(self._submit)
        elif request.route.model is not None and request.route.fields:
            find_model(self.connection.front, request, lambda fault: self._submit_named(request, fault))
        elif request.upload is None:
            self._submit(request)
        else:
            request.upload.finish(lambda: self._submit_upload(request))

    def _submit(self, exchange: Exchange) -> None:
        try:
            fault = exchange.model.engine.submit(exchange)
        except Exception:  # noqa: BLE001  logged and answered 500 by blunder()
            exchange.blunder()
            # With an id the engine knows the call, and would answer it a second time.
            if exchange.id:
                exchange.model.engine.cancel(exchange)
            return
        if fault is not None:
            exchange.fail(fault)

    def _submit_named(self, exchange: Exchange, fault: Fault | None) -> None:
        """Submit a request whose body has been read for its model's name, or answer that there is no such model."""
        # A large body is read on a thread: the client may have disconnected meanwhile.
        if self.current is not exchange:
            return
        if fault is not None:
            exchange.fail(fault)
        else:
            self._submit(exchange)

    def _submit_upload(self, exchange: Exchange) -> None:
        """Submit a request whose body has been written to its file, or answer that it could not be."""
        # The thread that writes the file reports late: the client may have disconnected meanwhile.
        if self.current is not exchange or exchange.upload is None:
            return
        if exchange.upload.error is not None:
            exchange.fail(NO_SPACE)
            return
        exchange.use_upload(exchange.upload)
        self._submit(exchange)

    # After an answer

    def finished(self, exchange: Exchange) -> None:
        """Go on to the next request after the answer of an exchange has been written, or close."""
        if not exchange.id:
            # It never reached the engine, which releases what it was given.
            exchange.release()
        self._next(exchange.keep_alive)

    def cycle_finished(self) -> None:
        """Go on after an answer of the ASGI app."""
        cycle = self.current
        # A lost connection has no current request, and this queue has let go of the connection.
        if isinstance(cycle, RequestResponseCycle):
            self._next(cycle.keep_alive)

    def _next(self, keep_alive: bool) -> None:
        """Answer the next request that waits, read on, or close: whichever is due after an answer."""
        self.current = None
        connection = self.connection
        transport = connection.transport
        if transport is None or transport.is_closing():
            return
        if not keep_alive:
            # Requests that wait behind it are never answered: `connection: close` has told the client so.
            connection.close_after_writing()
        elif connection.flow.write_paused:
            # Nothing more is read or run for a client that does not read: its answers would pile up here.
            self.waits_for_client = True
            connection.flow.pause_reading()
        elif self.waiting:
            # Not at once: an answer that the engine gives on the spot would call this method again from within it.
            connection.loop.call_soon(self._begin_waiting)
        elif connection.reader.phase == CLOSING:
            # A request behind these was refused: its answer is the last of the connection.
            transport.write(self.last_answer)
            connection.close_after_writing(unread=True)
        elif connection.input_ended:
            connection.close_after_writing()
        else:
            if connection.flow.read_paused:
                connection.flow.resume_reading()
            connection.reader.answered()

    def _begin_waiting(self) -> None:
        # Between the call and this turn of the loop the connection may have been lost, which empties the queue.
        if self.waiting and self.current is None and not self.connection.transport.is_closing():
            self._begin(self.waiting.popleft())

    # Clients that read slowly

    def pause(self) -> None:
        """Tell the engine that the client does not take the next chunk of its stream yet."""
        exchange = self.current
        if isinstance(exchange, Exchange) and exchange.started:
            exchange.model.engine.pause_stream(exchange, True)

    def resume(self) -> None:
        """Go on with the stream, or with the request, that waited for the client to read."""
        exchange = self.current
        if isinstance(exchange, Exchange) and exchange.started:
            exchange.model.engine.pause_stream(exchange, False)
        elif self.waits_for_client:
            self.waits_for_client = False
            self._next(True)

    # Ending

    @property
    def current_exchange(self) -> Exchange | None:
        """The request to the script that is being answered, if it is one."""
        return self.current if isinstance(self.current, Exchange) else None

    def close(self) -> None:
        """Cancel the request being answered, and all that wait: the connection is lost."""
        for request in (self.current, *self.waiting):
            # `HttpConnection.connection_lost` itself tells the cycle of an ASGI request.
            if isinstance(request, Exchange):
                request.cancel()
        self.waiting.clear()
        # Threads that report later compare with it: see `_submit_named` and `_submit_upload`.
        self.current = None
        del self.connection  # See `RequestReader.close`.
