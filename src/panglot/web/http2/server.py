"""Listening for gRPC by our own HTTP/2, sweeping and stopping: as `http1/server.py` does for HTTP/1.1."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from panglot.settings import Settings
from panglot.web.front import Front
from panglot.web.grpc.services import Services
from panglot.web.http2.connection import Http2Connection
from panglot.web.http2.pace import sweep
from panglot.web.http2.public_quota import PublicQuota
from panglot.web.listening.acceptor import Acceptor
from panglot.web.listening.tls import tls_context
from panglot.web.models import Model

log = logging.getLogger("panglot.web")
SWEPT = 1000
"""Connections and calls that are looked at in one turn of the loop."""
LAST_FRAMES = 1.0
"""Seconds that connections have to send their last frames, once all calls are answered."""


class Http2Server:
    """Listens for gRPC on a port of its own, for all models of a front."""

    def __init__(self, front: Front, settings: Settings, acceptor: Acceptor) -> None:
        self.front = front
        self.settings = settings
        self.acceptor = acceptor
        self.services = Services(front)
        self.tls = tls_context(settings)
        if self.tls is not None:
            # Many clients of gRPC refuse a TLS connection on which h2 was not agreed.
            self.tls.set_alpn_protocols(["h2"])
        self.connections: set[Http2Connection] = set()
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take calls from now on."""
        loop = asyncio.get_running_loop()
        quota = PublicQuota(self.front.quota)
        await self.acceptor.start(
            lambda: Http2Connection(self.front, self.services, quota, loop, self.connections), self.tls, self.settings
        )
        self._sweeper = loop.create_task(self._sweep())

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
        """Take no more connections, answer the calls that have come, then end the calls that only wait for news."""
        await self.acceptor.stop()
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
        models = (stream.inbox.model for stream in streams)
        return any(other is not None and other.engine is model.engine for other in models)

    def unanswered(self) -> int:
        calls = sum(connection.calls.unanswered() for connection in self.connections)
        return calls + len(self.services.open)

    def close(self) -> None:
        """Listen no longer, and end the connections that are open."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.acceptor.close()
        for connection in list(self.connections):
            connection.abort()
