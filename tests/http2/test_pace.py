"""Limits that take minutes: a connection is swept by a clock that the test moves."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from fuzz.http2_frames import Pipe
from panglot.web.grpc.services import Services
from panglot.web.http2.connection import Http2Connection
from panglot.web.http2.frames import ACK, NO_ERROR, PING, PREFACE, SETTINGS, frame, go_away
from panglot.web.http2.pace import IDLE, sweep
from panglot.web.http2.public_quota import PublicQuota
from support.still import still_front


class SocketPipe(Pipe):
    """A transport that keeps what is written, over a socket that has read everything."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.sock if name == "socket" else default


async def greeted(sock: socket.socket, **settings: Any) -> tuple[Http2Connection, SocketPipe]:
    front = still_front(**settings)
    pipe = SocketPipe(sock)
    connection = Http2Connection(front, Services(front), PublicQuota(front.quota), asyncio.get_running_loop(), set())
    connection.connection_made(pipe)
    hear(connection, PREFACE + frame(SETTINGS, 0, 0))
    await asyncio.sleep(0)
    return connection, pipe


def hear(connection: Http2Connection, data: bytes) -> None:
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


async def said_after(connection: Http2Connection, pipe: SocketPipe, seconds: float) -> bytes:
    """What the connection says when it is looked at so many seconds from now."""
    before = len(pipe.written)
    sweep(connection, time.monotonic() + seconds)
    await asyncio.sleep(0)
    return bytes(pipe.written[before:])


def test_an_idle_connection_is_closed() -> None:
    async def look() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            connection, pipe = await greeted(ours, peer_timeout=80_000.0)
            assert await said_after(connection, pipe, IDLE - 5) == b""
            assert await said_after(connection, pipe, IDLE + 5) == go_away(0, NO_ERROR, "idle")
            assert pipe.over
            connection.connection_lost(None)

    asyncio.run(look())


def test_a_silent_client_is_asked_whether_it_is_there() -> None:
    async def look() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            connection, pipe = await greeted(ours, peer_timeout=40.0)
            assert await said_after(connection, pipe, 30) == b""
            asks = frame(PING, 0, 0, b"are you?")
            assert await said_after(connection, pipe, 50) == asks
            assert await said_after(connection, pipe, 60) == b"", "once is enough"
            hear(connection, frame(PING, ACK, 0, b"are you?"))
            assert await said_after(connection, pipe, 30) == b""
            assert await said_after(connection, pipe, 50) == asks
            assert not pipe.over
            await said_after(connection, pipe, 90)
            assert pipe.over, "it has gone"
            connection.connection_lost(None)

    asyncio.run(look())
