"""A proxy in front of one HTTP service, which passes bytes on as they come and has a tap on every connection.

Each connection of a client gets its own connection to the service. So service and client decide about closing, waiting
and keeping alive. Only the value of Host is changed. The client gets the service's bytes before the tap sees them. A
fault of the tap ends only the tap.
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
"""Seconds after the service has closed in which a client may still read its answer. Bytes that it sends are dropped."""
HOST = re.compile(rb"^(host:[ \t]*)[^\r\n]*", re.IGNORECASE | re.MULTILINE)
RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER by which closing a connection resets it."""
UNREACHABLE = "the service does not answer"
CLIENT_GONE = "the client disconnected"
CLOSED_EARLY = "the service closed the connection before the end of its answer"
LOST = "the connection to the service was lost"
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Upstream:
    """The service. `host` is the value of Host in requests to it; empty: the client's value stays."""

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
    """Listens, and passes bytes on. The caller owns `recorder`, and closes it."""

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
        """Accept no more connections, wait up to `drain` seconds for running exchanges to end, and close."""
        if self._server is not None:
            self._server.close()
        loop = asyncio.get_running_loop()
        until = loop.time() + drain
        while self._connections and loop.time() < until:
            # Looked at again and again: an idle connection closes, and one that becomes idle closes in the next round.
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
            # Cancelled by `stop`. It ends here, because asyncio's server logs a callback that is cancelled.
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
        """Pass bytes on in both directions until one side has closed."""
        try:
            # The service is connected only with the first bytes: a client may open connections and never use them.
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
                # The client has sent its last request, and waits for the rest of its answers.
                await asyncio.wait((down,))
            if down.done():
                await self._end_client(down, up)
            else:
                self.problem = CLIENT_GONE
        finally:
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            # Without waiting for unsent bytes: the service should learn at once that the client has left.
            if self.problem == CLIENT_GONE:
                service[1].transport.abort()
            service[1].close()

    # From the client to the service

    async def _requests(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        """Pass on requests until the client sends no more. Raises OSError when its connection is lost."""
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
                # With TLS a connection cannot be closed in one direction alone: the client counts as disconnected.
                self.problem = CLIENT_GONE
                writer.close()

    def _rewritten(self, piece: Piece) -> bytes:
        """The bytes for the service, with its name in Host. With several Host headers they stay as they are."""
        host = self.service.host
        if piece.kind is not PieceKind.HEAD or not host or piece.head is None or len(piece.head.values("host")) != 1:
            return piece.raw
        return HOST.sub(lambda parsed: parsed[1] + host.encode(), piece.raw, count=1)

    async def _pass_on(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        """Write to the service. Bytes for a service that has closed are dropped, as its system would drop them."""
        if not data or self._service_closed:
            return
        try:
            writer.write(data)
            await writer.drain()
        except OSError:
            # No end of the exchange: an answer that the service has sent before may still be on its way.
            self._service_closed = True

    # From the service to the client

    async def _answers(self, reader: asyncio.StreamReader) -> None:
        """Pass on answers until the service closes. Raises _ServiceLost, or OSError when the client's connection is
        lost."""
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
        """Close the client's connection in the way in which the service has closed, in order or not."""
        self._service_closed = True
        error = down.exception()
        if isinstance(error, _ServiceLost):
            self.problem = LOST
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(LINGER):
                    await self._flushed()
            # Reset, and not closed in order: else a body that ends with its connection would look complete.
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
                # Its input is read on meanwhile: a connection that is closed with unread input is reset, and the answer
                # on its way is lost.
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
    """The connection to the service has broken, and was not closed in order."""
