"""All ports of one package, started and stopped together. Most packages have one; a graph has one per server node."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import ssl
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from panglot.errors import StartError
from panglot.settings import Settings
from panglot.settings.loopback import UNIX
from panglot.web.contract import Listener
from panglot.web.front import Front
from panglot.web.http1.server import WebServer, bind
from panglot.web.listening import unix_socket
from panglot.web.listening.acceptor import Accept, Acceptor, SocketAcceptor
from panglot.web.models import Model


class Listening(Protocol):
    """A server that takes requests at an address, whatever its protocol."""

    async def start(self) -> None:
        """Take requests from now on. Raises StartError."""

    async def drain(self) -> None:
        """Take no more, and return when all that came are answered."""

    def unanswered(self) -> int:
        """How many requests have no answer yet."""

    def has_request_for(self, model: Model) -> bool:
        """Whether a request for a model has begun to arrive and has no answer yet."""

    def close(self) -> None:
        """End at once."""


def grpc_listening(front: Front, acceptor: Acceptor) -> Listening:
    """The server for calls of gRPC. Only here its modules are imported: most servers have no port for gRPC."""
    from panglot.web.http2.server import Http2Server

    return Http2Server(front, front.settings, acceptor)


class Listeners:
    """All ports of one server, as one."""

    def __init__(
        self,
        fronts: list[Front],
        sockets: Sockets,
        tls: ssl.SSLContext | None,
        accept: Accept = SocketAcceptor,
    ) -> None:
        """Serve each front at its socket; `accept` says how the connections of a socket come."""
        self.servers: list[Listening] = [
            WebServer(front, accept(sock), tls) for front, sock in zip(fronts, sockets.http, strict=True)
        ]
        if sockets.grpc is not None:
            self.servers.append(grpc_listening(fronts[0], accept(sockets.grpc)))
        self.urls = [url(sock, tls is not None) for sock in sockets.http]

    async def start(self) -> None:
        for server in self.servers:
            await server.start()

    async def drain(self) -> None:
        await asyncio.gather(*(server.drain() for server in self.servers))

    def unanswered(self) -> int:
        return sum(server.unanswered() for server in self.servers)

    def has_request_for(self, model: Model) -> bool:
        """Whether a request for a model has begun to arrive and has no answer yet."""
        return any(server.has_request_for(model) for server in self.servers)

    def close(self) -> None:
        for server in self.servers:
            server.close()


class Sockets(NamedTuple):
    """The listening sockets of a server."""

    http: list[socket.socket]
    """The server's own first, then those of further listeners."""
    grpc: socket.socket | None

    def all(self) -> list[socket.socket]:
        return [*self.http, *([self.grpc] if self.grpc is not None else [])]


def bind_all(further: Sequence[Listener], settings: Settings) -> Sockets:
    """Take every port of the server: the settings name the first, contracts the others. Raises StartError."""
    sockets: list[socket.socket] = []
    try:
        sockets.append(bind(settings))
        sockets.extend(bind(_at(settings, listener.port)) for listener in further)
        return Sockets(sockets, _bind_grpc(settings) if settings.grpc_port >= 0 else None)
    except BaseException:
        for sock in sockets:
            sock.close()
        raise


def _bind_grpc(settings: Settings) -> socket.socket:
    if settings.host.startswith(UNIX):
        return bind(dataclasses.replace(settings, host=f"{settings.host}.{settings.grpc_port}"))
    try:
        return bind(dataclasses.replace(settings, port=settings.grpc_port))
    except StartError:
        fix = "choose another --grpc-port, or --grpc-port 0 for a free one"
        raise StartError(f"{settings.host}:{settings.grpc_port}: gRPC cannot listen there", fix=fix) from None


def _at(settings: Settings, port: int) -> Settings:
    """The settings for a further port; beside a Unix socket that is one whose path ends in the port's number."""
    if settings.host.startswith(UNIX):
        return dataclasses.replace(settings, host=f"{settings.host}.{port}")
    return dataclasses.replace(settings, port=port if settings.port else 0)


def url(sock: socket.socket, tls: bool) -> str:
    if sock.family == socket.AF_UNIX:
        return UNIX + str(sock.getsockname())
    host, port = sock.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def grpc_url(sock: socket.socket, settings: Settings) -> str:
    """Where gRPC is, for the log."""
    where = unix_socket.path_of(sock) or f"{settings.host}:{sock.getsockname()[1]}"
    return f"{'grpcs' if settings.tls_cert else 'grpc'}://{where}"
