"""How connections come to a server: from its own listening socket, or from the parent of several fronts."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol

from panglot.settings import Settings
from panglot.web.listening import unix_socket
from panglot.web.listening.stop_accepting import stop_accepting

BACKLOG = 2048
MakeProtocol = Callable[[], asyncio.BaseProtocol]


class Acceptor(Protocol):
    """Makes a protocol for each connection of one address."""

    async def start(self, make: MakeProtocol, tls: ssl.SSLContext | None, settings: Settings) -> None:
        """Take connections from now on."""

    async def stop(self) -> None:
        """Take no further connection, and lose none that the kernel has accepted."""

    def close(self) -> None:
        """End at once."""


Accept = Callable[[socket.socket], Acceptor]
"""Makes the acceptor of a listening socket."""


class TlsTimeouts(NamedTuple):
    """The timeouts of TLS: the sweep does not see a connection before its handshake is over. None: no TLS."""

    handshake: float | None
    shutdown: float | None


class SocketAcceptor:
    """Accepts from a listening socket, which it owns."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._path = unix_socket.path_of(sock)
        self._server: asyncio.Server | None = None

    async def start(self, make: MakeProtocol, tls: ssl.SSLContext | None, settings: Settings) -> None:
        """Listen, and make a protocol for each connection."""
        loop = asyncio.get_running_loop()
        create = loop.create_unix_server if self._sock.family == socket.AF_UNIX else loop.create_server
        timeouts = tls_timeouts(tls, settings)
        self._server = await create(
            make,
            sock=self._sock,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=timeouts.handshake,
            ssl_shutdown_timeout=timeouts.shutdown,
        )

    async def stop(self) -> None:
        if self._server is not None:
            await stop_accepting(self._server, self._sock)

    def close(self) -> None:
        # After `stop` this does no more than remove the file of a Unix socket.
        if self._server is not None:
            self._server.close()
        unix_socket.remove(self._path)


def tls_timeouts(tls: ssl.SSLContext | None, settings: Settings) -> TlsTimeouts:
    return TlsTimeouts(settings.header_timeout, settings.write_stall) if tls else TlsTimeouts(None, None)
