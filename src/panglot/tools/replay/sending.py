"""Sends the requests of a recording: at the recorded pace, faster, or as fast as some connections can.

Memory does not grow with the recording. Only a window of pairs is read ahead, and each pair is dropped after its
comparison.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from panglot.inputs.addresses import ServerAddress
from panglot.recording.framing import MessageHead, MessageReader, PieceKind, answer_framing
from panglot.recording.recording import Pair, RecordedAnswer, request_bytes

PIECE = 64 << 10
WINDOW_PAIRS = 256
WINDOW_BYTES = 64 << 20
"""How far ahead pairs are read. They are in the file in the order of their ends, and are sent by their beginnings."""
MOST_AT_PACE = 256
"""Connections that a replay at a pace may use."""
LARGEST_ANSWER = 1 << 30
clock = time.perf_counter


@dataclass(frozen=True)
class ReplayPace:
    """The pace of a replay. `connections` above 0: as fast as so many can; else `speed` times the recorded pace."""

    speed: float = 1.0
    connections: int = 0
    timeout: float = 60.0


def by_beginning(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """The pairs in the order of their beginnings, as far as a window allows."""
    window: list[tuple[float, int, Pair]] = []
    order = itertools.count()
    size = 0
    for pair in pairs:
        heapq.heappush(window, (pair.at, next(order), pair))
        size += len(pair.request.body) + len(pair.answer.body)
        while len(window) > WINDOW_PAIRS or (size > WINDOW_BYTES and len(window) > 1):
            first = heapq.heappop(window)[2]
            size -= len(first.request.body) + len(first.answer.body)
            yield first
    while window:
        yield heapq.heappop(window)[2]


class Sender:
    """One replay. `report` gets each pair, the answer, its time in seconds, and a problem in place of an answer."""

    def __init__(
        self,
        address: ServerAddress,
        headers: dict[str, str],
        pace: ReplayPace,
        report: Callable[[Pair, RecordedAnswer, float, str], None],
    ) -> None:
        self.address = address
        self.headers = headers
        self.pace = pace
        self.report = report
        self._idle: list[_Connection] = []
        self._tls = ssl.create_default_context() if address.secure else None

    async def run(self, pairs: Iterator[Pair]) -> None:
        """Send all pairs, and wait for the last answer."""
        pace = self.pace
        slots = asyncio.Semaphore(pace.connections or MOST_AT_PACE)
        tasks: set[asyncio.Task[None]] = set()
        start, first = clock(), None
        ordered = by_beginning(pairs)
        # On a thread: reading ahead may decompress many megabytes, while answers come.
        while (pair := await asyncio.to_thread(next, ordered, None)) is not None:
            if not pace.connections:
                first = pair.at if first is None else first
                await asyncio.sleep(max(0.0, start + (pair.at - first) / pace.speed - clock()))
            await slots.acquire()
            task = asyncio.ensure_future(self._send(pair))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(lambda done: slots.release())
        await asyncio.gather(*tasks)
        for connection in self._idle:
            connection.close()

    async def _send(self, pair: Pair) -> None:
        connection = self._idle.pop() if self._idle else None
        request = request_bytes(pair, self.address.authority, self.headers)
        began = clock()
        try:
            async with asyncio.timeout(self.pace.timeout):
                if connection is not None:
                    # The server may have closed the idle connection meanwhile: then the request goes out once more.
                    with contextlib.suppress(NoAnswer):
                        self._done(pair, connection, await connection.ask(request, pair.request.method), began)
                        return
                    connection.close()
                connection = await _Connection.open(self.address, self._tls)
                # Again: the time to open the connection is no part of the latency.
                began = clock()
                self._done(pair, connection, await connection.ask(request, pair.request.method), began)
        except (OSError, TimeoutError, ValueError, NoAnswer) as error:
            if connection is not None:
                connection.close()
            why = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            self.report(pair, RecordedAnswer(), clock() - began, why)

    def _done(self, pair: Pair, connection: _Connection, answer: RecordedAnswer, began: float) -> None:
        took = clock() - began
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.close()
        self.report(pair, answer, took, "")


class NoAnswer(Exception):
    """The connection was closed before anything of an answer came."""


class _Connection:
    """One connection to the server under test, with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.reusable = False

    @classmethod
    async def open(cls, address: ServerAddress, tls: ssl.SSLContext | None) -> _Connection:
        if address.socket:
            return cls(*await asyncio.open_unix_connection(address.socket, limit=PIECE))
        return cls(*await asyncio.open_connection(address.host, address.port, ssl=tls, limit=PIECE))

    def close(self) -> None:
        self._writer.close()

    async def ask(self, request: bytes, method: str) -> RecordedAnswer:
        """Send a request and read its answer. Raises NoAnswer, or OSError where the answer breaks off or is no HTTP."""
        messages = MessageReader(False, lambda head: answer_framing(head, method))
        final: MessageHead | None = None
        body: list[bytes] = []
        self.reusable = False
        size = 0
        with contextlib.suppress(OSError):
            # A server may answer, and close, before it has read the whole request: its answer is read all the same.
            self._writer.write(request)
            await self._writer.drain()
        while True:
            data = await self._read()
            pieces = messages.feed(data) if data else messages.finish()
            for piece in pieces:
                if piece.kind is PieceKind.OPAQUE:
                    raise OSError("the answer is no HTTP/1")
                if piece.kind is PieceKind.HEAD and piece.head is not None and int(piece.head.first[0]) >= 200:
                    final = piece.head
                size += len(piece.payload)
                body.append(piece.payload)
                if piece.kind is PieceKind.END and final is not None:
                    closing = "close" in ",".join(final.values("connection")).lower()
                    self.reusable = bool(data) and final.minor == 1 and not closing
                    whole = b"".join(body)
                    status, reason = int(final.first[0]), final.first[1]
                    return RecordedAnswer(final.headers, [], len(whole), "", whole, status, reason)
            if size > LARGEST_ANSWER:
                raise OSError("the answer is too large")
            if not data:
                if final is None:
                    raise NoAnswer("the connection was closed without an answer")
                raise OSError("the answer broke off")

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(PIECE)
        except ConnectionResetError:
            raise NoAnswer("the connection was reset") from None
