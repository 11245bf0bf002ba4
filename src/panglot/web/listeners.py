"""All ports of one package, started and stopped together. Most packages have one; a graph has one per server node."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import ssl

from panglot.settings import Settings
from panglot.settings.loopback import UNIX
from panglot.web.contract import Contract
from panglot.web.front import Front
from panglot.web.server import WebServer, bind


class Listeners:
    """The servers of one package."""

    def __init__(self, fronts: list[Front], sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        self.servers = [WebServer(front, sock, tls) for front, sock in zip(fronts, sockets, strict=True)]
        self.urls = [url(sock, tls is not None) for sock in sockets]

    async def start(self) -> None:
        for server in self.servers:
            await server.start()

    async def drain(self) -> None:
        await asyncio.gather(*(server.drain() for server in self.servers))

    def unanswered(self) -> int:
        return sum(server.unanswered() for server in self.servers)

    def close(self) -> None:
        for server in self.servers:
            server.close()


def bind_all(contract: Contract, settings: Settings) -> list[socket.socket]:
    """Take every port of the package: the settings name the first, the contract the others. Raises StartError."""
    sockets = [bind(settings)]
    for listener in contract.listeners:
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
