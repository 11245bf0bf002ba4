"""All ports of one package, started and stopped together. Most packages have one; a graph has one per server node."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import ssl
from collections.abc import Sequence
from typing import Protocol

from panglot.settings import Settings
from panglot.settings.loopback import UNIX
from panglot.web.contract import Listener
from panglot.web.front import Front
from panglot.web.http1.server import WebServer, bind
from panglot.web.models import Model


class Listening(Protocol):
    """What takes requests at an address, by whatever protocol."""

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


def grpc_listening(front: Front) -> Listening:
    """What takes calls of gRPC. Nothing of gRPC and HTTP/2 is imported before: most servers have no port for them."""
    from panglot.web.http2.server import Http2Server

    return Http2Server(front, front.settings)


class Listeners:
    """All that listens for one server."""

    def __init__(self, fronts: list[Front], sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        self.servers: list[Listening] = [
            WebServer(front, sock, tls) for front, sock in zip(fronts, sockets, strict=True)
        ]
        if fronts[0].settings.grpc_port >= 0:
            self.servers.append(grpc_listening(fronts[0]))
        self.urls = [url(sock, tls is not None) for sock in sockets]

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


def bind_all(further: Sequence[Listener], settings: Settings) -> list[socket.socket]:
    """Take every port of the server: the settings name the first, contracts the others. Raises StartError."""
    sockets = [bind(settings)]
    for listener in further:
        try:
            sockets.append(bind(_at(settings, listener.port)))
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
    return sockets


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
