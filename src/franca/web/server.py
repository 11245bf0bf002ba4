"""Listening, sweeping and stopping: the life of the HTTP side."""

from __future__ import annotations

import asyncio
import logging
import socket
import time

from uvicorn.config import Config
from uvicorn.server import ServerState

from franca.errors import StartError
from franca.settings import Settings
from franca.web.front import Front
from franca.web.protocol import Connection

log = logging.getLogger("franca.web")
BACKLOG = 2048


def bind(settings: Settings) -> socket.socket:
    """Take the port. Raises StartError in one line; nothing is loaded before this succeeds."""
    address = settings.host.strip("[]")
    try:
        found = socket.getaddrinfo(address, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise StartError(
            f"{settings.host} is no address to listen on: {error.strerror or error}", fix="--host 127.0.0.1"
        ) from None
    family, kind, protocol, _, where = found[0]
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        words = (error.strerror or str(error)).lower()
        raise StartError(
            f"{settings.host}:{settings.port}: {words}", fix="choose another --port, or --port 0 for a free one"
        ) from None
    sock.setblocking(False)
    return sock


class WebServer:
    """Accepts connections for one front and sweeps their timeouts."""

    def __init__(self, front: Front, sock: socket.socket) -> None:
        self.front = front
        self.sock = sock
        self.state = ServerState()
        assert front.app is not None
        self.config = Config(
            front.app,
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="off",
            date_header=False,
            server_header=False,
        )
        self.config.load()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self.front, self.config, self.state, loop), sock=self.sock, backlog=BACKLOG
        )
        self._sweeper = loop.create_task(self._sweep())

    async def _sweep(self) -> None:
        settings = self.front.settings
        shortest = min(
            settings.header_timeout, settings.keep_alive, settings.body_gap, settings.body_timeout,
            settings.body_rate_after, settings.write_stall, 4.0,
        )  # fmt: skip
        while True:
            await asyncio.sleep(max(0.02, shortest / 4))
            self.front.tick()
            now = time.monotonic()
            for connection in list(self.state.connections):
                connection.sweep(now)  # type: ignore[union-attr]

    async def stop(self, seconds: float) -> None:
        """Take no more connections, let answers finish, then close what is left."""
        deadline = time.monotonic() + seconds
        await self._empty_accept_queue()
        if self._server is not None:
            self._server.close()
        while self.state.connections and time.monotonic() < deadline:
            for connection in list(self.state.connections):
                connection.shutdown()
            await asyncio.sleep(0.02)
        for connection in list(self.state.connections):
            connection.transport.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    async def _empty_accept_queue(self) -> None:
        """Connections the kernel has accepted for us are ours to answer."""
        for _ in range(3):
            await asyncio.sleep(0.02)
