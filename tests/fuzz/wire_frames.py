"""Frames: a stream of any bytes, however it is cut, is read the same by both sides, or ended by WireError; no more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from panglot.engine.workers.worker import DEAD, Worker
from panglot_worker.line import calls, wire
from panglot_worker.line.port import FrontGone, Port

GENERATION = 1
CUTS = (1, 5, 64, 1 << 20)
MOST = wire.MAX_CONTROL
"""Bytes the front may set aside because a worker said so."""

READY = {"batched": True, "slots": 1, "max_batch": 4, "workers": 1, "seconds": 0.5}
HEADERS = [wire.HEADER.pack(length, kind, 0, count, 1) for kind in wire.NAMES for length, count in ((0, 0), (8, 1))]

WORDS = [
    *HEADERS,
    *[b"\0" * 4, b"\xff" * 4, b"\0" * 8, b"\1\0\0\0", b"\1" + b"\0" * 7, b"{}", b"[]", b'{"', b'":', b",", b"null"],
    *rb""""type" "failure" "pipeline" "retire" "batch_split" "report" "warning" "items" "pools" 1 1e999""".split(),
    b"item",
    *rb""""id" "uris" "step" "batched" "slots" "workers" "max_batch" "seconds" "message" "failed" "error" """.split(),
    wire.json_frame(wire.HELLO, GENERATION, {"python": "3.11"}),
    wire.json_frame(wire.READY, GENERATION, READY),
    wire.json_frame(wire.EVENT, GENERATION, {"type": "failure", "item": 1, "message": "m", "traceback": "t"}),
    wire.json_frame(wire.METRIC, GENERATION, {"a": 1.5}),
    wire.ids_frame(wire.FREE, [1, 2], GENERATION),
    wire.cancel_frame([1], GENERATION),
    b"".join(wire.run_frame([(1, 2.5, b"id\0/predict", [b"{}"], 2, 0, 0)], GENERATION)),
    b"".join(wire.run_frame([(1, 2.5, b"id", [], 9, 16398, 16398)], GENERATION)),
    b"".join(wire.reply_frame([wire.Reply(1, 200, wire.SHARED, wire.NO_TIMES, b"", wire.placed(9))], GENERATION)),
    b"".join(wire.reply_frame([wire.Reply(1, 200, wire.FETCH, wire.NO_TIMES, b"", b'["http://a/"]')], GENERATION)),
    b"".join(wire.reply_frame([wire.Reply(1, 200, 0, wire.NO_TIMES, b"application/json", b"{}")], GENERATION)),
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(data: bytes) -> None:
    told = [front_hears(data, cut) for cut in CUTS]
    assert all(one == told[0] for one in told), told
    # A worker that has read ahead may learn of the end before it comes to what was said before.
    heard = [worker_hears(data, cut) for cut in CUTS]
    assert all(one == heard[0][: len(one)] for one in heard), heard


# The front's side


class Told:
    """Stands for the pool: notes what it is told."""

    title = "worker"
    max_reply = 1 << 20

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def on_ready(self, worker: Worker, ready: dict[str, Any]) -> None:
        self.notes.append(("ready", ready))

    def on_replies(self, worker: Worker, replies: list[wire.Reply]) -> None:
        self.notes.append([reply._replace(body=bytes(reply.body)) for reply in replies])

    def on_event(self, worker: Worker, event: dict[str, Any]) -> None:
        self.notes.append(("event", event))

    def on_free(self, worker: Worker, payload: memoryview) -> None:
        self.notes.append(("free", wire.item_ids(payload)))

    def on_call(self, worker: Worker, payload: memoryview) -> None:
        about, body = calls.read(payload)
        self.notes.append(("call", wire.control(wire.CALL, about), bytes(body)))

    def on_metrics(self, deltas: dict[str, float]) -> None:
        self.notes.append(("metrics", deltas))

    def on_death(self, worker: Worker) -> None:
        self.notes.append("death")

    def on_writable(self) -> None:
        pass


class Cord:
    """A transport that only knows whether it was cut."""

    def __init__(self) -> None:
        self.cut = False

    def abort(self) -> None:
        self.cut = True


def front_hears(data: bytes, cut: int) -> tuple[list[Any], str]:
    """What the pool is told, and why the link was ended, if it was."""
    pool = Told()
    worker = Worker(pool, 0, GENERATION, lambda: 0.0)
    worker._exited = True
    cord: Any = Cord()
    worker.link.connection_made(cord)
    at = 0
    while at < len(data) and not cord.cut:
        room = worker.link.get_buffer(-1)
        assert len(room) <= MOST
        size = min(cut, len(room), len(data) - at)
        room[:size] = data[at : at + size]
        at += size
        worker.link.buffer_updated(size)
    worker.link.connection_lost(None)
    assert worker.state == DEAD
    return pool.notes, worker.link.doubt


# The worker's side


class Bytes:
    """A socket that gives so many bytes at a time, then ends."""

    def __init__(self, data: bytes, cut: int) -> None:
        self.data = memoryview(data)
        self.cut = cut

    def recv(self, size: int, flags: int = 0) -> bytes:
        size = min(size, self.cut)
        found, self.data = bytes(self.data[:size]), self.data[size:]
        return found

    def recv_into(self, room: memoryview) -> int:
        found = self.recv(len(room))
        room[: len(found)] = found
        return len(found)


class Ear(Port):
    """Takes no memory for what cannot come: a worker believes the front, which is this very software."""

    def _large(self, begun: memoryview, length: int) -> memoryview:
        if length > len(begun) + len(self.sock.data):
            raise FrontGone
        return super()._large(begun, length)


def worker_hears(data: bytes, cut: int) -> list[Any]:
    """What a worker takes out of the frames."""
    stream: Any = Bytes(data, cut)
    port = Ear(stream, GENERATION)
    heard: list[Any] = []
    try:
        while True:
            frame = port.next()
            if frame.kind == wire.RUN:
                heard.append([read(item) for item in port.items(frame.payload, frame.items)])
            else:
                heard.append((frame.kind, wire.json_object(frame.payload) if frame.kind == wire.HELLO else b""))
    except (FrontGone, wire.WireError):
        return heard


def read(item: wire.Item) -> Any:
    return item._replace(body=bytes(item.body), seconds_left=repr(item.seconds_left)), wire.Head.unpack(item.head)
