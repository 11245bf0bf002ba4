"""One HTTP/1.1 connection: its transport, and how it ends.

    request_reader   bytes -> whole requests, within limits      phases   how far the newest request has been read
    answer_queue     whole requests -> answers, in order         pace     limits on time, swept by the server
    exchange         one request to the script, its answer       head, admission, head_cache   the head of a request

Requests to the script never touch ASGI. uvicorn's cycle runs the ASGI app for all others. uvicorn's own protocol is not
used: for every connection it does work that only requests to the ASGI app need.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from panglot.web.front import Front
from panglot.web.http1 import admission
from panglot.web.http1.answer_queue import AnswerQueue
from panglot.web.http1.exchange import Exchange
from panglot.web.http1.half_closed import BegunTransport
from panglot.web.http1.phases import BODY, HEADERS, IDLE
from panglot.web.http1.request_reader import RequestReader
from panglot.web.limits import peer
from panglot.web.models import Model

GONE_WITHIN = 0.01
"""Seconds after a client's last byte when we first look whether it has disconnected; the sweep looks again."""


cycle_log = logging.getLogger("uvicorn.error")


class Connections:
    """The connections of one listener that are open, and the tasks of the ASGI app that answer requests on them."""

    def __init__(self) -> None:
        self.open: set[HttpConnection] = set()
        self.tasks: set[asyncio.Task[None]] = set()


class HttpConnection:
    """The connection of one client. It has a reader of requests and a queue of answers."""

    transport: asyncio.Transport
    """None before the connection is made, and after it was lost."""
    flow: FlowControl

    def __init__(self, front: Front, config: Config, connections: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self.transport = self.flow = None  # type: ignore[assignment]
        self.scheme = "http"
        self.loop = loop
        self.front = front
        self.limits = front.settings
        self._config = config
        self._connections = connections
        self.answers = AnswerQueue(self)
        self.reader = RequestReader(self, self.answers)
        self.reserved = False
        """Whether this connection is beyond the limit and may only ask for public routes."""
        self.unsent = 0
        """Bytes of answers the client has not read yet, as counted in `Quota.used`."""
        self.input_ended = False
        """Whether the client has sent its last byte."""
        self.delivered = 0
        self.delivered_at = self.reader.since
        """Bytes that have reached the client, and when we last saw this number change, or nothing left to send."""

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, which the quota may count, or take as a reserved one."""
        self.transport = transport
        self.flow = FlowControl(transport)
        if transport.get_extra_info("sslcontext"):
            self.scheme = "https"
        self._connections.open.add(self)
        # The quota may close an idle connection for this one, or turn away the oldest reserved one.
        self.reserved = not self.front.quota.admit(self)

    @property
    def client(self) -> tuple[str, int] | None:
        """The address of the client; None on a Unix socket."""
        address = self._address("peername")
        return (str(address[0]), int(address[1])) if isinstance(address, tuple) else None

    @property
    def server(self) -> tuple[str, int | None] | None:
        """Our own address, or the path of our Unix socket."""
        address = self._address("sockname")
        if isinstance(address, str):
            return address, None
        return (str(address[0]), int(address[1])) if isinstance(address, tuple) else None

    def _address(self, name: str) -> Any:
        try:
            return self.transport.get_extra_info(name)
        except OSError:
            return None

    # What the ASGI app answers

    def new_cycle(self, scope: dict[str, Any], keep_alive: bool) -> RequestResponseCycle:
        """The cycle of a request that is not for the script, given what its head says."""
        scope |= {"server": self.server, "client": self.client, "scheme": self.scheme}
        return RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=cycle_log,
            access_logger=cycle_log,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self.answers.cycle_finished,
        )

    def run_app(self, cycle: RequestResponseCycle) -> None:
        task = self.loop.create_task(cycle.run_asgi(self._config.loaded_app))
        self._connections.tasks.add(task)
        task.add_done_callback(self._connections.tasks.discard)

    # Clients that read slowly

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        # Only a first count: the sweep counts again while writing stays paused and the buffer shrinks.
        self.count_unsent(self.transport.get_write_buffer_size())
        self.answers.pause()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self.count_unsent(0)
        self.answers.resume()

    def count_unsent(self, unsent: int) -> None:
        """Count how many bytes of its answers the client has not read."""
        self.front.quota.used += unsent - self.unsent
        self.unsent = unsent

    # Ending

    def close_after_writing(self, unread: bool = False) -> None:
        """Half-close and read on for a moment: closing with unread input would destroy the answer on its way.

        TLS knows no half-close. There the sweep closes, once all is written and unread input has had its moment.
        """
        # From here on bytes are read and dropped, so that the kernel has no unread input to answer with a reset.
        self.reader.stop()
        if self.input_ended:
            self.transport.close()
            return
        # A pipelined request, or a slow client, may have paused reading.
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        elif not unread and not self.transport.get_write_buffer_size():
            self.transport.close()

    def eof_received(self) -> bool:
        """Keep the connection open, if there is something to answer: a client that sends no more may still listen.

        TLS has no such state. A client that stops sending during a streamed answer counts as disconnected: nothing
        would show whether it listens before the next chunk is written.
        """
        exchange = self.answers.current_exchange
        if self.answers.current is None or self.scheme == "https" or (exchange is not None and exchange.started):
            return False
        self.input_ended = True
        if exchange is not None:
            # Only exchanges look up the transport when they write. A cycle of uvicorn holds the old one already.
            self.transport = cast(asyncio.Transport, BegunTransport(self.transport))
            self.loop.call_later(GONE_WITHIN, self.drop_if_gone)
        return True

    def drop_if_gone(self) -> None:
        """Close a connection whose client has sent its last byte and does not listen either."""
        if self.input_ended and self.transport is not None and peer.has_reset(self.transport.get_extra_info("socket")):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the requests that are being read, are being answered, or wait."""
        self.front.quota.remove(self)
        self.count_unsent(0)
        # Before `answers.close`, which forgets the request.
        cycle = self.answers.current
        self.reader.close()
        self.answers.close()
        self._connections.open.discard(self)
        if isinstance(cycle, RequestResponseCycle):
            cycle.disconnected = cycle.disconnected or not cycle.response_complete
            cycle.message_event.set()
        if self.flow is not None:
            # An ASGI app may wait for the client to read.
            self.flow.resume_writing()
        if exc is None and self.transport is not None:
            self.transport.close()
        # Replies of the engine that come later see by this that nobody is left to answer.
        self.transport = None  # type: ignore[assignment]

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    # For the quota

    @property
    def idle_since(self) -> float:
        """Since when the connection has had all its answers and no further request; 0 while it is not idle."""
        # The next request may lie unread in the kernel: closing now would lose it without an answer.
        if self.transport is None or self.reader.phase != IDLE or self._has_unread_input():
            return 0.0
        return self.reader.since

    def _has_unread_input(self) -> bool:
        return peer.unread(self.transport.get_extra_info("socket")) > 0

    def evict(self) -> None:
        """Close this idle connection, so that another client finds a free one."""
        self.front.metrics.refused["idle"] += 1
        self.transport.close()

    def turn_away(self) -> None:
        """Close a connection beyond the limit, unless its request is being answered."""
        if self.transport is not None and self.answers.current is None:
            self.reader.refuse(admission.TOO_MANY_CONNECTIONS, "connections")

    # For the server

    def has_request_for(self, model: Model) -> bool:
        """Whether a request for a model is arriving here, waits, or is being answered."""
        requests = (self.reader.request, self.answers.current, *self.answers.waiting)
        return any(isinstance(request, Exchange) and request.model.engine is model.engine for request in requests)

    def open_requests(self) -> int:
        """How many requests have begun to arrive, and have no answer or one that the client has not read yet."""
        reader, answers = self.reader, self.answers
        arriving = reader.phase == BODY or (reader.phase == HEADERS and reader.begun)
        return len(answers.waiting) + (answers.current is not None or self.unsent > 0) + arriving

    def close_if_idle(self, now: float, grace: float) -> None:
        """While draining: end an endless stream, and close a connection that has been idle for `grace` seconds."""
        reader, exchange = self.reader, self.answers.current_exchange
        if exchange is not None and exchange.route.endless:
            exchange.end_stream()
        # A connection that has sent nothing at all is in HEADERS from the start, and never was IDLE.
        quiet = reader.phase == IDLE or (reader.phase == HEADERS and not reader.begun)
        if quiet and now - reader.since > grace and self.transport is not None:
            self.transport.close()


class ConnectionCallbacks(NamedTuple):
    """A buffered protocol for uvloop: an object with `get_buffer` that is no `asyncio.Protocol`.

    A tuple, because uvloop looks these up once and then calls the reader and the connection directly.
    """

    get_buffer: Callable[[int], memoryview]
    buffer_updated: Callable[[int], None]
    connection_made: Callable[[Any], None]
    connection_lost: Callable[[Exception | None], None]
    eof_received: Callable[[], bool]
    pause_writing: Callable[[], None]
    resume_writing: Callable[[], None]


def callbacks(connection: HttpConnection) -> asyncio.BufferedProtocol:
    """The protocol to give to a transport of uvloop."""
    seen = ConnectionCallbacks(
        connection.reader.get_buffer,
        connection.reader.buffer_updated,
        connection.connection_made,
        connection.connection_lost,
        connection.eof_received,
        connection.pause_writing,
        connection.resume_writing,
    )
    return cast(asyncio.BufferedProtocol, seen)
