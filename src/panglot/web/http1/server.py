"""Listening, sweeping and stopping: the life of the HTTP side."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time

from uvicorn.config import Config

from panglot.errors import StartError
from panglot.settings import Settings
from panglot.settings.loopback import UNIX
from panglot.web.front import Front
from panglot.web.http1.connection import Connections, HttpConnection, callbacks
from panglot.web.http1.pace import sweep
from panglot.web.limits.peer import notice_silence
from panglot.web.listening import unix_socket
from panglot.web.listening.acceptor import BACKLOG, Acceptor
from panglot.web.models import Model

log = logging.getLogger("panglot.web")
IDLE_GRACE = 1.0
"""Seconds after which an idle connection is closed while draining; a request that comes earlier is still answered."""


def bind(settings: Settings) -> socket.socket:
    """Listen on the port. Raises StartError; nothing is loaded before this succeeds."""
    if settings.host.startswith(UNIX):
        return unix_socket.bind(settings.host.removeprefix(UNIX), BACKLOG)
    address = settings.host.strip("[]")
    try:
        choices = socket.getaddrinfo(address, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        why = error.strerror or str(error)
        raise StartError(f"{settings.host} is no address to listen on: {why}", fix="--host 127.0.0.1") from None
    family, kind, protocol, _, where = choices[0]
    sock = socket.socket(family, kind, protocol)
    # Without it, old connections of a server that has just ended keep the port taken for a while.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        why = (error.strerror or str(error)).lower()
        fix = "choose another --port, or --port 0 for a free one"
        raise StartError(f"{settings.host}:{settings.port}: {why}", fix=fix) from None
    sock.setblocking(False)
    notice_silence(sock, max(settings.peer_timeout, settings.write_stall))
    return sock


class WebServer:
    """Accepts connections for one front and sweeps their timeouts."""

    def __init__(self, front: Front, acceptor: Acceptor, tls: ssl.SSLContext | None = None) -> None:
        self.front = front
        self.acceptor = acceptor
        self.tls = tls
        self._connections = Connections()
        assert front.app is not None
        self.config = Config(front.app, log_config=None, access_log=False, ws="none", lifespan="off")
        self.config.load()
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def connections(self) -> list[HttpConnection]:
        return list(self._connections.open)

    async def start(self) -> None:
        """Accept connections, and begin to sweep them."""
        loop = asyncio.get_running_loop()
        with_callbacks = self.front.recorded or callbacks
        await self.acceptor.start(
            lambda: with_callbacks(HttpConnection(self.front, self.config, self._connections, loop)),
            self.tls,
            self.front.settings,
        )
        self._sweeper = loop.create_task(self._sweep())

    async def _sweep(self) -> None:
        settings = self.front.settings
        shortest = min(
            settings.header_timeout, settings.keep_alive, settings.body_gap, settings.body_timeout,
            settings.body_rate_after, settings.write_stall, 4.0,
        )  # fmt: skip
        while True:
            # A quarter of the shortest limit: no limit is overrun by much more than that.
            await asyncio.sleep(max(0.02, shortest / 4))
            self.front.tick()
            now = time.monotonic()
            for connection in self.connections:
                self._look_at(connection, now)

    def _look_at(self, connection: HttpConnection, now: float) -> None:
        """Sweep one connection. No fault of it may end the sweep: other connections need their limits too."""
        try:
            sweep(connection, now)
        except (OSError, ValueError):
            # Its socket has just been closed, which the loop has yet to tell it.
            pass
        except Exception:
            log.exception("a connection could not be looked after, and is closed")
            connection.abort()

    async def drain(self) -> None:
        """Accept no more connections, answer what has come, and close connections as they become idle."""
        await self.acceptor.stop()
        # Time and again: requests may still be arriving, and their connections become idle later.
        while self._connections.open:
            now = time.monotonic()
            for connection in self.connections:
                connection.close_if_idle(now, IDLE_GRACE)
            await asyncio.sleep(0.02)

    def has_request_for(self, model: Model) -> bool:
        return any(connection.has_request_for(model) for connection in self.connections)

    def unanswered(self) -> int:
        """Requests that have begun to arrive and have no answer yet."""
        return sum(connection.open_requests() for connection in self.connections)

    def close(self) -> None:
        """Listen no longer, and end the connections that are open."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.acceptor.close()
        for connection in self.connections:
            connection.abort()
