"""Listening for gRPC by our own HTTP/2, sweeping and stopping: as `http1/server.py` does for HTTP/1.1."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import socket
import time

from panglot.errors import StartError
from panglot.settings import Settings
from panglot.settings.loopback import UNIX
from panglot.web.front import Front
from panglot.web.grpc.services import Services
from panglot.web.http1 import unix_socket
from panglot.web.http1.server import BACKLOG, bind
from panglot.web.http2.connection import Http2Connection
from panglot.web.http2.pace import sweep
from panglot.web.http2.public_quota import PublicQuota
from panglot.web.models import Model
from panglot.web.stop_accepting import stop_accepting
from panglot.web.tls import tls_context

log = logging.getLogger("panglot.web")
SWEPT = 1000
"""Connections and calls that are looked at in one turn of the loop."""
LAST_FRAMES = 1.0
"""Seconds that connections have to send their last frames, once all calls are answered."""


class Http2Server:
    """Listens for gRPC on a port of its own, for all models of a front."""

    def __init__(self, front: Front, settings: Settings) -> None:
        self.front = front
        self.settings = settings
        self.services = Services(front)
        self.tls = tls_context(settings)
        if self.tls is not None:
            # Many clients of gRPC refuse a TLS connection on which h2 was not agreed.
            self.tls.set_alpn_protocols(["h2"])
        self.connections: set[Http2Connection] = set()
        self.path = ""
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises StartError."""
        sock = self.sock = self._bind()
        loop = asyncio.get_running_loop()
        quota = PublicQuota(self.front.quota)
        create = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
        self._server = await create(
            lambda: Http2Connection(self.front, self.services, quota, loop, self.connections),
            sock=sock,
            backlog=BACKLOG,
            ssl=self.tls,
            ssl_handshake_timeout=self.settings.header_timeout if self.tls else None,
            ssl_shutdown_timeout=self.settings.write_stall if self.tls else None,
        )
        self._sweeper = loop.create_task(self._sweep())
        log.info("listening on %s too, for gRPC", self._url(sock))

    def _bind(self) -> socket.socket:
        settings = self.settings
        if settings.host.startswith(UNIX):
            self.path = f"{settings.host.removeprefix(UNIX)}.{settings.grpc_port}"
            return unix_socket.bind(self.path, BACKLOG)
        try:
            return bind(dataclasses.replace(settings, port=settings.grpc_port))
        except StartError:
            fix = "choose another --grpc-port, or --grpc-port 0 for a free one"
            raise StartError(f"{settings.host}:{settings.grpc_port}: gRPC cannot listen there", fix=fix) from None

    def _url(self, sock: socket.socket) -> str:
        where = self.path if self.path else f"{self.settings.host}:{sock.getsockname()[1]}"
        return f"{'grpcs' if self.tls else 'grpc'}://{where}"

    async def _sweep(self) -> None:
        settings = self.settings
        shortest = min(
            settings.header_timeout, settings.body_gap, settings.body_timeout, settings.body_rate_after,
            settings.write_stall, 4.0,
        )  # fmt: skip
        while True:
            await asyncio.sleep(max(0.02, shortest / 4))
            looked_at = 0
            # A list of its own: connections come and go while this loop sleeps.
            for connection in list(self.connections):
                looked_at += 1 + len(connection.calls.streams)
                with contextlib.suppress(OSError, ValueError):  # Its socket has just been closed.
                    sweep(connection, time.monotonic())
                if looked_at > SWEPT:
                    # There may be a thousand calls on each of a thousand connections.
                    looked_at = 0
                    await asyncio.sleep(0)

    async def drain(self) -> None:
        """Take no more connections, answer the calls that have come, then end what only waits."""
        if self._server is None:
            return
        await stop_accepting(self._server, self.sock)
        for connection in self.connections:
            connection.announce_stop()
        # Both: until a client knows that the server stops, further calls may be on their way.
        while self.unanswered() or not all(connection.refuses_new_calls for connection in self.connections):
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.end_listening_calls()
        until = time.monotonic() + LAST_FRAMES
        while self.connections and time.monotonic() < until:
            await asyncio.sleep(0.02)

    def has_request_for(self, model: Model) -> bool:
        streams = (stream for connection in self.connections for stream in connection.calls.streams.values())
        asked = (stream.inbox.model for stream in streams)
        return any(other is not None and other.engine is model.engine for other in asked)

    def unanswered(self) -> int:
        calls = sum(connection.calls.unanswered() for connection in self.connections)
        return calls + len(self.services.open)

    def close(self) -> None:
        """Listen no longer, and end the connections that are open."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        unix_socket.remove(self.path)
        for connection in list(self.connections):
            connection.abort()
