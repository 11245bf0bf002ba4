"""A proxy in front of one HTTP service, which passes bytes on as they come and has a tap on every connection.

Each connection of a client has a connection of its own to the service, so that closing, waiting and keeping alive are
the service's and the client's own. Of all bytes the value of Host alone is changed. What the service sends is written
to the client before the tap sees it, and a fault of the tap ends the tap.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import socket
import ssl
import struct
from dataclasses import dataclass
from urllib.parse import urlsplit

from panglot.errors import StartError
from panglot.inputs.addresses import ServerAddress, server_address
from panglot.recording.framing import Piece, PieceKind
from panglot.recording.recorder import Recorder
from panglot.recording.tap import ConnectionTap

log = logging.getLogger("panglot.record")
PIECE = 64 << 10
CONNECT_TIMEOUT = 30.0
LINGER = 2.0
"""Seconds in which a client may still read its answer, and send what nobody reads, after the service has closed."""
HOST = re.compile(rb"^(host:[ \t]*)[^\r\n]*", re.IGNORECASE | re.MULTILINE)
RESET = struct.pack("ii", 1, 0)
UNREACHABLE = "the service does not answer"
CLIENT_GONE = "the client disconnected"
CLOSED_EARLY = "the service closed the connection before the end of its answer"
LOST = "the connection to the service was lost"
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Upstream:
    """The service. `host` is the value of Host that requests get; empty: that of the client."""

    address: ServerAddress
    host: str
    tls: ssl.SSLContext | None = None

    async def connect(self) -> Ends:
        """A new connection. Raises OSError, also after too long a time."""
        address = self.address
        if address.socket:
            opening = asyncio.open_unix_connection(address.socket, limit=PIECE)
        else:
            name = address.host if self.tls else None
            opening = asyncio.open_connection(
                address.host, address.port, ssl=self.tls, server_hostname=name, limit=PIECE
            )
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await opening


def upstream(url: str, keep_host: bool = False, authority: str = "") -> Upstream:
    """The service at a URL; `authority` is a file of certificates to trust. Raises StartError."""
    address = server_address(url)
    parts = urlsplit(url)
    if not address.socket and (parts.username is not None or parts.password is not None):
        raise StartError("the address of the service has credentials in it", fix="clients send their own")
    if address.wanted not in ("", "/"):
        raise StartError(f"{url} has a path", fix="give scheme, host and port: clients send the paths themselves")
    tls = None
    if address.secure:
        try:
            tls = ssl.create_default_context(cafile=authority or None)
        except (OSError, ssl.SSLError) as error:
            raise StartError(f"{authority} holds no certificates: {error}", fix="name a file in PEM format") from None
    host = "localhost" if address.socket else parts.netloc
    return Upstream(address, "" if keep_host else host, tls)


class Proxy:
    """Listens, and passes on. `recorder` is closed by its owner."""

    def __init__(self, service: Upstream, recorder: Recorder, most_connections: int = 2048) -> None:
        self.service = service
        self.recorder = recorder
        self.most_connections = most_connections
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and give the port. Raises StartError."""
        try:
            self._server = await asyncio.start_server(self._accept, host, port, limit=PIECE)
        except OSError as error:
            why = error.strerror or str(error)
            fix = "choose another --port, or --port 0 for a free one"
            raise StartError(f"{host}:{port} cannot be listened on: {why}", fix=fix) from None
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def stop(self, drain: float) -> None:
        """Accept no more, let exchanges that are under way come to their end within `drain` seconds, and close."""
        if self._server is not None:
            self._server.close()
        loop = asyncio.get_running_loop()
        until = loop.time() + drain
        while self._connections and loop.time() < until:
            for task, connection in self._connections.items():
                if connection.tap.idle:
                    task.cancel()
            await asyncio.sleep(0.02)
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= self.most_connections:
            writer.transport.abort()
            return
        connection = _Connection(self.service, self.recorder, (reader, writer))
        self._connections[task] = connection
        try:
            await connection.run()
        except asyncio.CancelledError:
            # `stop` cancels. The server of asyncio would print the cancellation of its callback.
            pass
        finally:
            del self._connections[task]


class _Connection:
    """One client, and its connection to the service."""

    def __init__(self, service: Upstream, recorder: Recorder, client: Ends) -> None:
        self.service = service
        self.tap = ConnectionTap(recorder)
        self.reader, self.writer = client
        self.problem = CLOSED_EARLY
        self._service_closed = False

    async def run(self) -> None:
        """Pass on in both directions until one of the two has closed."""
        try:
            first = await self.reader.read(PIECE)
            if first:
                await self._connected(first)
        except OSError:
            self.problem = CLIENT_GONE
        finally:
            self.tap.closed(self.problem)
            self.writer.close()

    async def _connected(self, first: bytes) -> None:
        try:
            service = await self.service.connect()
        except (OSError, TimeoutError, ssl.SSLError) as error:
            await self._unreachable(first, error)
            return
        up = asyncio.ensure_future(self._requests(first, service[1]))
        down = asyncio.ensure_future(self._answers(service[0]))
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            if not down.done() and up.exception() is None:
                # The client sends no more, and waits for the rest of its answers.
                await asyncio.wait((down,))
            if down.done():
                await self._end_client(down, up)
            else:
                self.problem = CLIENT_GONE
        finally:
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            if self.problem == CLIENT_GONE:
                service[1].transport.abort()
            service[1].close()

    # From the client to the service

    async def _requests(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        """Raises OSError when the client's connection is lost. Returns when the client sends no more."""
        while data:
            await self._pass_on(b"".join(self._rewritten(piece) for piece in self.tap.request(data)), writer)
            data = await self.reader.read(PIECE)
        await self._pass_on(b"".join(piece.raw for piece in self.tap.request_ended()), writer)
        with contextlib.suppress(OSError):
            if self._service_closed:
                return
            if writer.can_write_eof():
                writer.write_eof()
            else:
                # TLS knows no half-closed connections: the client counts as disconnected.
                self.problem = CLIENT_GONE
                writer.close()

    def _rewritten(self, piece: Piece) -> bytes:
        """The bytes for the service: with its own name in Host, where the client has named one host."""
        host = self.service.host
        if piece.kind is not PieceKind.HEAD or not host or piece.head is None or len(piece.head.values("host")) != 1:
            return piece.raw
        return HOST.sub(lambda parsed: parsed[1] + host.encode(), piece.raw, count=1)

    async def _pass_on(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        """Write to the service. What a service that has closed does not read is thrown away, as its kernel would."""
        if not data or self._service_closed:
            return
        try:
            writer.write(data)
            await writer.drain()
        except OSError:
            self._service_closed = True

    # From the service to the client

    async def _answers(self, reader: asyncio.StreamReader) -> None:
        """Raises _ServiceLost, or OSError when the client's connection is lost. Returns when the service closes."""
        while True:
            try:
                data = await reader.read(PIECE)
            except OSError as error:
                raise _ServiceLost(str(error)) from None
            if not data:
                return
            self.writer.write(data)
            self.tap.answer(data)
            await self.writer.drain()

    # Ending

    async def _end_client(self, down: asyncio.Future[None], up: asyncio.Future[None]) -> None:
        """The service has closed, or the client's connection is lost: close the client's as the service closed its."""
        self._service_closed = True
        error = down.exception()
        if isinstance(error, _ServiceLost):
            self.problem = LOST
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(LINGER):
                    await self._flushed()
            # A body that ends with the connection would look whole if the connection were closed in order.
            sock = self.writer.get_extra_info("socket")
            with contextlib.suppress(OSError, AttributeError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.writer.transport.abort()
        elif error is not None:
            self.problem = CLIENT_GONE
        else:
            with contextlib.suppress(OSError):
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                # Closing with unread input would destroy an answer on its way.
                await asyncio.wait((up,), timeout=LINGER)

    async def _flushed(self) -> None:
        while self.writer.transport.get_write_buffer_size():  # noqa: ASYNC110  transports have no event for it
            await asyncio.sleep(0.01)

    async def _unreachable(self, first: bytes, error: BaseException) -> None:
        why = getattr(error, "strerror", "") or str(error) or "it took too long to connect"
        log.warning("%s: %s", UNREACHABLE, why)
        for _ in self.tap.request(first):
            pass
        self.problem = UNREACHABLE
        message = f"{UNREACHABLE}: {self.service.address}"
        body = json.dumps({"error": {"code": "service_unreachable", "message": message}}).encode()
        head = f"HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        with contextlib.suppress(OSError, TimeoutError):
            if self.writer.can_write_eof():
                self.writer.write_eof()
            async with asyncio.timeout(LINGER):
                await self._discarded()

    async def _discarded(self) -> None:
        while await self.reader.read(PIECE):
            pass


class _ServiceLost(Exception):
    """The connection to the service broke; it was not closed in order."""
