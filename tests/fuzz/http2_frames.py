"""HTTP/2, in process: whatever frames come, however they are cut, are acted on the same, and leave nothing behind.

The limits are small here, so that an input of a few kilobytes reaches every one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from panglot.engine.call import Call, Fault, SharedBuffer
from panglot.engine.memory import buffers
from panglot.engine.memory.buffers import Arena
from panglot.web.front import Front
from panglot.web.grpc import inbox, messages, received_message
from panglot.web.grpc.services import Services
from panglot.web.http2 import budget, calls, frame_reader, frames, outflow, public_quota
from panglot.web.http2.connection import Http2Connection
from panglot.web.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    entry,
    frame,
)  # fmt: skip
from panglot.web.http2.public_quota import PublicQuota
from panglot_worker.line import wire
from support.http2 import INFER, LIVE, STREAM_INFER, block, infer, literal, message
from support.rpc import REFLECTION
from support.still import StillEngine, still_front, still_model

TURNS = 400
"""Of the loop, within which every call that has come whole is answered."""
LARGEST = 1 << 16
LIMITS: dict[str, Any] = {"max_body": 2000, "max_headers": 600}
SMALL: dict[Any, dict[str, Any]] = {
    budget: {"MOST": 80, "PER_SECOND": 0.0}, calls: {"MOST_OPEN": 3, "BACKLOG": 500, "AT_ONCE": 2, "MOST_ABANDONED": 3},
    messages: {"NAMES": 300, "MOST_FIELDS": 8, "MOST_OF_INFERENCE": 20}, received_message: {"SMALL": 64},
    inbox: {"MOST_WAITING": 3, "PIECE": 16, "SMALL": 400}, outflow: {"TURNS": 3}, public_quota: {"MOST": 5000},
}  # fmt: skip
"""The limits that are no settings, by the modules that use them."""
WHOLE, TURN = 1 << 30, 3
"""Frames of one turn of the loop: all of them, so that nothing happens between two; and a few."""
HEALTH = "/grpc.health.v1.Health/"
HUFFMAN = b"\x00\x84\x1c\x64\x3f\xff\x88\xff\xff\xff\xe2\xff\xff\xff\xff"

CALLS = [
    frame(HEADERS, END_HEADERS, stream, block(path)) + frame(DATA, END_STREAM, stream, message(body))
    for stream, path, body in (
        (1, INFER, infer("still")), (3, LIVE, b""), (5, STREAM_INFER, infer("still")), (7, REFLECTION, b"\x3a\x00"),
        (9, INFER, infer("other")), (11, "/no/Such", b""),
    )
]  # fmt: skip
WORDS = [
    PREFACE + frame(SETTINGS, 0, 0), PREFACE + frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, 3)) + CALLS[0],
    PREFACE + frame(SETTINGS, 0, 0) + b"".join(CALLS), *CALLS, frame(SETTINGS, 1, 0),
    *(frame(HEADERS, END_HEADERS, stream, block(INFER)) for stream in (1, 3, 5)),
    *(frame(HEADERS, END_HEADERS, stream, block(STREAM_INFER)) for stream in (1, 3)),
    *(frame(DATA, flags, stream, message(infer("still"))) for flags in (0, 1) for stream in (1, 3)),
    *(frame(DATA, flags, stream, b"\0\0\0\0\x09") for flags in (0, 1) for stream in (1, 3)),
    *(frame(RST_STREAM, 0, stream, bytes(4)) for stream in (0, 1, 3, 5)),
    *(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more)) for stream in (0, 1, 3) for more in (0, 9, 1 << 30)),
    *(frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, size)) for size in (0, 1, 70_000, frames.LARGEST_WINDOW, 1 << 31)),
    frame(SETTINGS, 0, 0, entry(5, 16384) + entry(1, 0)), frame(PING, 0, 0, bytes(8)), frame(PING, 1, 0, b"draining"),
    frame(PRIORITY, 0, 1, bytes(5)), frame(GOAWAY, 0, 0, bytes(8)), frame(99, 0, 1, b"abc"),
    frame(HEADERS, 0, 1, block()), frame(CONTINUATION, END_HEADERS, 1, literal(b"x", b"y")),
    frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x82"), frame(DATA, PADDED, 1, b"\x03abcdef"),
    frame(DATA, END_STREAM, 1, message(b"x" * 5000)), frame(HEADERS, END_HEADERS, 1, b"\x40\x01a\x81\xff\xbe\xbf"),
    *(
        frame(HEADERS, END_HEADERS, stream, block(HEALTH + call)) + frame(DATA, END_STREAM, stream, message(body))
        for stream, call, body in ((1, "Watch", b""), (3, "Watch", b"\x0a\x05other"), (5, "Check", b"\x48\x00" * 9))
    ),
    *(frame(HEADERS, END_HEADERS, stream, block(HEALTH + "Check")) for stream in (1, 3, 5, 7)),
    *(frame(DATA, 0, 1, data) for data in (message() * 9, message(b"\x48\x00" * 40), message(bytes(300)))),
    frame(DATA, 0, 1, message(infer("still", values=(1.0,) * 60))[:90]), frame(DATA, 0, 3, message(bytes(390))[:90]),
    frame(HEADERS, END_HEADERS, 1, block("/no/Such")), frame(DATA, 0, 1, b"x"), frame(SETTINGS, 1, 0) * 9,
    frame(PING, 1, 0, bytes(8)) * 9, frame(99, 0, 0) * 9, frame(GOAWAY, 0, 0, bytes(8)) * 9,
    frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 9, frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)) * 9,
    frame(SETTINGS, 0, 0, (entry(INITIAL_WINDOW, 1) + entry(INITIAL_WINDOW, 0)) * 4), HUFFMAN,
    frame(HEADERS, END_HEADERS, 1, block(LIVE) + HUFFMAN), infer("still")[7:] + infer("still")[:7],
    block(INFER), block(LIVE, grpc_encoding=b"gzip"), block(LIVE, grpc_timeout=b"1m"), message(infer("still"), 1),
    *[bytes([size]) * times for size in (0, 1, 4, 9, 0x3F, 0x7F, 0x80, 0xFF) for times in (1, 3, 9)],
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    loop = asyncio.new_event_loop()
    complaints = Complaints()
    logging.getLogger("panglot.web").addHandler(complaints)
    with contextlib.ExitStack() as stack:
        for module, limits in SMALL.items():
            stack.enter_context(patch.multiple(module, **limits))
        front = still_front(**LIMITS)
        shared = buffers.create(1 << 20, 1 << 16)
        assert shared is not None
        yield lambda data: loop.run_until_complete(check(front, shared, complaints, data))
    logging.getLogger("panglot.web").removeHandler(complaints)
    loop.close()


class Complaints(logging.Handler):
    """Notes what the server says of failures of its own, which it survives and which must not be."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


async def check(front: Front, shared: Arena, complaints: Complaints, data: bytes) -> None:
    """Whole, in small pieces, and byte by byte: each time the same calls reach the engine. Then in several turns.

    What a client may still say depends on what has been answered, so what comes of those is not compared.
    """
    for sent in (data, PREFACE + frame(SETTINGS, 0, 0) + data):
        told = [await talk(front, shared, sent, cut, WHOLE) for cut in (1 << 20, 7, 1)]
        assert told[0] == told[1] == told[2], told
        await talk(front, shared, sent, 1 << 20, TURN)
        assert not complaints.records, complaints.records[0].getMessage()


class Echo(StillEngine):
    """Answers every call in the next turn of the loop with what it was sent; some it refuses."""

    def __init__(self, shared: Arena | None = None) -> None:
        super().__init__()
        self.shared = shared
        self.bodies: list[bytes] = []
        self.gone: set[Call] = set()

    def buffer(self, size: int) -> SharedBuffer | None:
        return self.shared.take(size) if self.shared is not None else None

    def submit(self, call: Call) -> Fault | None:
        call.id = len(self.bodies) + 1
        self.bodies.append(b"".join(bytes(piece) for piece in call.body()))
        assert call.size == len(self.bodies[-1])
        wire.Head.unpack(call.head)
        if call.size % 5 == 3:
            return Fault(503, "queue_full", "too many requests are waiting; try again later", 1)
        answer = wire.Reply(call.id, 200, 0, wire.NO_TIMES, b"application/grpc", self.bodies[-1] * 3)
        asyncio.get_running_loop().call_soon(self._answer, call, answer)
        return None

    def _answer(self, call: Call, answer: wire.Reply) -> None:
        if call not in self.gone:
            call.release_buffer()
            call.reply(answer)

    def cancel(self, call: Call) -> None:
        call.release_buffer()
        self.gone.add(call)


class Sock:
    """The socket of a client that reads everything."""

    family = 0

    def fileno(self) -> int:
        raise OSError


@dataclass
class Pipe(asyncio.Transport):
    """A transport that keeps what is written."""

    written: bytearray = field(default_factory=bytearray)
    over: bool = False
    paused: bool = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return Sock() if name == "socket" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: Any) -> None:
        assert not self.over, f"after the end: {bytes(data)!r}"
        self.written += data

    def writelines(self, data: Iterable[Any]) -> None:
        self.write(b"".join(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.over

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.over = True

    abort = close = write_eof


async def talk(front: Front, shared: Arena, data: bytes, cut: int, turn: int) -> tuple[list[bytes], bool]:
    """What the engine was asked for, and whether the connection was ended."""
    with patch.object(frame_reader, "TURN", turn):
        return await told(front, shared, data, cut)


async def told(front: Front, shared: Arena, data: bytes, cut: int) -> tuple[list[bytes], bool]:
    still_model(front).engine = engine = Echo(shared)
    loop = asyncio.get_running_loop()
    everywhere: set[Http2Connection] = set()
    pipe = Pipe()
    connection = Http2Connection(front, Services(front), PublicQuota(front.quota), loop, everywhere)
    connection.connection_made(pipe)
    for at in range(0, len(data), cut):
        piece = data[at : at + cut]
        connection.get_buffer(-1)[: len(piece)] = piece
        connection.buffer_updated(len(piece))
        while connection.deferred:
            await asyncio.sleep(0)
        assert len(connection.reader.rest) <= LARGEST
    await answered(connection)
    ended = pipe.over
    check_written(bytes(pipe.written))
    connection.connection_lost(None)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not everywhere
    assert not connection.calls.streams
    assert connection.outflow.backlog == 0
    assert front.quota.used == 0
    assert shared.used == 0
    assert not front.quota.connections
    return engine.bodies, ended


async def answered(connection: Http2Connection) -> None:
    """Wait until every call that came whole has its answer, as far as windows let it leave."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
        streams = connection.calls.streams.values()
        waits = connection.outflow.window <= 0 or connection.calls.is_full
        if waits or all(not stream.ended or stream.pending or stream.watch is not None for stream in streams):
            return
    raise AssertionError("a call is never answered")


def check_written(data: bytes) -> None:
    """What the server says is frames, each stream of which ends once."""
    if data.startswith(b"HTTP/1.1 505 "):
        return
    ended: set[int] = set()
    while data:
        size = int.from_bytes(data[:3], "big")
        kind, flags, stream = data[3], data[4], int.from_bytes(data[5:9], "big")
        assert len(data) >= 9 + size
        if kind in (DATA, HEADERS):
            assert stream not in ended
            if flags & END_STREAM:
                ended.add(stream)
        data = data[9 + size :]
