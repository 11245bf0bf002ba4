"""Frames survive the trip, and nothing else passes for a frame."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panglot_worker.line import wire
from panglot_worker.line.port import FrontGone, Port

small = st.binary(max_size=300)
field = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b""))
items = st.lists(st.tuples(st.integers(0, 2**64 - 1), field, st.lists(small, max_size=3)), max_size=8)
times = st.tuples(*[st.integers(0, 2**32 - 1)] * 5)
reply = st.builds(
    wire.Reply, st.integers(0, 2**64 - 1), st.integers(100, 599), st.integers(0, 3), times, field, small,
    st.integers(0, 2**32 - 1),
)  # fmt: skip

CALL = {
    "call": 1, "model": "m", "version": "", "items": [1, 2], "seconds": 0.5, "streams": False, "size": 3,
    "in_pieces": False, "native": None,
}  # fmt: skip


def payload(buffers: list[wire.Buffer]) -> tuple[int, int, memoryview]:
    whole = b"".join(buffers)
    length, kind, _flags, count, _generation = wire.HEADER.unpack_from(whole)
    assert len(whole) == wire.HEADER.size + length
    return kind, count, memoryview(whole)[wire.HEADER.size :]


@given(items)
def test_run_items_come_back_as_they_were(given_items: list[tuple[int, bytes, list[bytes]]]) -> None:
    sent = [(key, 1.5, head, pieces, sum(map(len, pieces)), 0, key % 7) for key, head, pieces in given_items]
    kind, count, data = payload(wire.run_frame(sent, 7))
    assert kind == wire.RUN
    got = [(item.id, item.head, bytes(item.body), item.buffer) for item in wire.run_items(data, count)]
    assert got == [(key, head, b"".join(pieces), key % 7) for key, head, pieces in given_items]


def test_bodies_in_shared_memory_are_named_and_not_sent() -> None:
    looked: list[tuple[int, int, int]] = []

    def look(item_id: int, place: int, length: int, came: memoryview | None) -> memoryview:
        looked.append((item_id, place, length))
        return memoryview(b"there")

    lent: dict[int, int] = {}
    sent = [
        (1, 1.0, b"a", [b"here"], 4, 0, 0),
        (2, 1.0, b"b", [], 5, 65536 + 16, 77),
        (3, 1.0, b"c", [b"too"], 3, 0, 0),
    ]
    _kind, count, data = payload(wire.run_frame(sent, 7))
    assert [bytes(item.body) for item in wire.run_items(data, count, look, lent)] == [b"here", b"there", b"too"]
    assert (looked, lent) == ([(2, 65552, 5)], {2: 77})
    with pytest.raises(wire.WireError, match="that has none"):
        wire.run_items(data, count)
    replies = [wire.Reply(1, 200, 0, wire.NO_TIMES, b"", b"x"),
               wire.Reply(2, 200, wire.SHARED, wire.NO_TIMES, b"", wire.placed(100_000))]  # fmt: skip
    _kind, count, data = payload(wire.reply_frame(replies, 7))
    assert [len(one.body) for one in wire.replies(data, count)] == [1, 100_000]


@given(st.lists(reply, max_size=8))
def test_replies_come_back_as_they_were(sent: list[wire.Reply]) -> None:
    kind, count, data = payload(wire.reply_frame(sent, 7))
    assert kind == wire.REPLY
    assert [one._replace(body=bytes(one.body)) for one in wire.replies(data, count)] == sent


@given(st.binary(max_size=200), st.integers(0, 20))
def test_garbage_is_refused_not_misread(data: bytes, count: int) -> None:
    for read in (wire.run_items, wire.replies):
        try:
            found = read(memoryview(data), count)
        except wire.WireError:
            continue
        assert len(found) == count


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"3"])
def test_control_frames_hold_an_object(text: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.json_object(text)


@pytest.mark.parametrize(("kind", "said"), [
    (wire.EVENT, {"type": "held", "items": [1, 2]}), (wire.EVENT, {"type": "held", "items": 3, "since": 1}),
    (wire.EVENT, {"type": "held", "items": [1, [2]], "since": 1}),
    (wire.EVENT, {"type": "held", "items": [], "since": "1"}),
    (wire.CALL, {**CALL, "items": [{}]}), (wire.CALL, {**CALL, "items": ["1"]}),
])  # fmt: skip
def test_fields_of_another_type_end_the_worker(kind: int, said: dict[str, Any]) -> None:
    with pytest.raises(wire.WireError):
        wire.control(kind, json.dumps(said).encode())


def test_fields_of_the_right_types_are_read() -> None:
    for kind, said in ((wire.EVENT, {"type": "held", "items": [1, 2], "since": 1}), (wire.CALL, CALL)):
        assert wire.control(kind, json.dumps(said).encode()) == said


def test_head_fields_survive() -> None:
    head = wire.Head(b"id", b"/predict", b"application/json", b"*/*", b"/predict", b"a=1", b"", b"")
    assert wire.Head.unpack(head.pack()) == head


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=6), st.integers(1, 700))
@settings(max_examples=50)
def test_a_port_reads_frames_however_they_are_cut(bodies: list[bytes], cut: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = b"".join(wire.frame(wire.METRIC, 1, body) for body in bodies)
        port = Port(theirs)
        for start in range(0, len(stream), cut):
            ours.sendall(stream[start : start + cut])
            port.poll()
        assert [bytes(port.next().payload) for _ in bodies] == bodies


def test_a_port_takes_frames_larger_than_its_reads() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        body = bytes(range(256)) * 8192
        port = Port(theirs)
        sender = threading.Thread(
            target=ours.sendall, args=(wire.frame(wire.METRIC, 1, body) + wire.frame(wire.STOP, 1),)
        )
        sender.start()
        assert bytes(port.next().payload) == body
        assert port.next().kind == wire.STOP
        sender.join()


def test_cancellations_are_seen_while_reading_ahead() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(wire.cancel_frame([3, 5], 1) + wire.frame(wire.STOP, 1))
        port = Port(theirs)
        port.poll()
        assert port.cancelled == {3, 5}
        assert port.next().kind == wire.STOP


def test_the_end_of_the_stream_is_the_death_of_the_front() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(wire.frame(wire.STOP, 1)[:5])
        ours.close()
        with pytest.raises(FrontGone):
            Port(theirs).next()


@contextlib.contextmanager
def signals(handler: Any) -> Iterator[None]:
    """Signals for this thread, one after the other: a handler runs between any two of its steps."""
    over, main = threading.Event(), threading.get_ident()

    def strike() -> None:
        while not over.wait(0.0005):
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: handler())
    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_handler_may_send_amid_a_frame_of_its_own_thread() -> None:
    ours, theirs = socket.socketpair()
    heard: list[str] = []

    def listen() -> None:
        port = Port(theirs)
        while (frame := port.next()).kind != wire.STOP:
            heard.append(wire.json_object(frame.payload)["message"][:9])

    def within() -> None:
        nonlocal told
        told += 1
        port.tell(wire.EVENT, {"message": "within"})

    port, told = Port(ours), 0
    with ours, theirs:
        listener = threading.Thread(target=listen)
        listener.start()
        with signals(within):
            for number in range(200):
                port.tell(wire.METRIC, {"message": f"frame {number:03}" + "x" * 500_000})
        port.tell(wire.STOP)
        listener.join()
    assert told
    assert [word for word in heard if word != "within"] == [f"frame {number:03}" for number in range(200)]
    assert heard.count("within") == told
