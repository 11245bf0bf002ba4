"""The next batch is decoded while a script runs the one before, as if it had been decoded in its turn."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from panglot_worker.dialects.base import Answer, Request, Stages
from panglot_worker.items.intake import LARGE, Intake
from panglot_worker.line import wire
from panglot_worker.line.port import FrontGone, Port


class Line:
    """Both ends of a worker's socket, and what was decoded on which thread."""

    def __init__(self) -> None:
        self.front, here = socket.socketpair()
        self.port = Port(here)
        self.threads: list[str] = []
        self.decoding = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def decode(self, request: Request) -> str:
        self.threads.append(threading.current_thread().name)
        self.decoding.set()
        self.go_on.wait(30)
        if bytes(request.body) == b"bad":
            raise ValueError("no text")
        return bytes(request.body).decode()

    def stages(self, **more: Any) -> Stages:
        return Stages(self.decode, lambda value: value, lambda output, request: Answer("", b""), **more)

    def send(self, *bodies: bytes, flags: int = wire.AHEAD, route: bytes = b"/predict") -> None:
        head = wire.Head(b"id", route).pack()
        items = [(number, 1.0, head, [body], len(body), 0, 0) for number, body in enumerate(bodies)]
        self.front.sendall(b"".join(wire.run_frame(items, 0, flags)))


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.front.close()
    line.port.sock.close()


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Not that of support.server: these tests run on every Python, beside the standard library."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def taken(line: Line, intake: Intake, count: int) -> list[Request]:
    """The requests of the next frame, once so many have been decoded while a script seemed to run."""
    with intake:
        wait_until(lambda: len(line.threads) == count)
    return intake.requests(intake.next())


def test_the_thread_decodes_what_comes_meanwhile(line: Line) -> None:
    intake = Intake(line.port, line.stages(decodes_ahead=True))
    line.send(b"a", b"bad", b"c")
    requests = taken(line, intake, 3)
    assert set(line.threads) == {"panglot-intake"}
    decoded = [request.decoded[0] if request.decoded else None for request in requests]
    assert decoded == ["a", None, "c"], "whoever runs the second tells its client what is wrong with it"
    assert [bytes(request.body) for request in requests] == [b"a", b"bad", b"c"]
    line.send(b"d", b"e")
    requests = intake.requests(intake.next())
    assert [(bytes(request.body), request.decoded) for request in requests] == [(b"d", None), (b"e", None)]


def test_it_leaves_off_when_the_script_is_done(line: Line) -> None:
    intake = Intake(line.port, line.stages(decodes_ahead=True))
    line.send(b"a", b"b", b"c")
    line.go_on.clear()

    def go_on_when_it_is_closed() -> None:
        wait_until(lambda: not intake._open.is_set(), 30)
        line.go_on.set()

    with intake:
        assert line.decoding.wait(30)
        threading.Thread(target=go_on_when_it_is_closed).start()
    requests = intake.requests(intake.next())
    assert [request.decoded is not None for request in requests] == [True, False, False]


def test_items_that_are_no_batch_are_left_alone(line: Line) -> None:
    intake = Intake(line.port, line.stages(decodes_ahead=True))
    for bodies, flags in (((b"a",), wire.AHEAD), ((b"a", b"b"), wire.SINGLY)):
        line.send(*bodies, flags=flags)
        with intake:
            wait_until(lambda: line.port.pending)
        assert [request.decoded for request in intake.requests(intake.next())] == [None] * len(bodies)
    assert not line.threads


def test_large_bodies_are_left_to_their_turn(line: Line) -> None:
    """Reading JSON of that size turns garbage collection off: a script that runs meanwhile would notice."""
    intake = Intake(line.port, line.stages(decodes_ahead=True))
    threading.Thread(target=line.send, args=(b"a", bytes(LARGE + 1))).start()
    assert [request.decoded is not None for request in taken(line, intake, 1)] == [True, False]


def test_each_route_has_its_own_say(line: Line) -> None:
    routes = {b"/predict": line.stages(decodes_ahead=True), b"/typed": line.stages()}
    intake = Intake(line.port, line.stages(by_route=routes))
    assert intake.useful
    line.send(b"a", b"b")
    assert [request.decoded is not None for request in taken(line, intake, 2)] == [True, True]
    line.send(b"a", b"b", route=b"/typed")
    with intake:
        wait_until(lambda: line.port.pending)
    assert [request.decoded for request in intake.requests(intake.next())] == [None, None]
    assert not Intake(line.port, line.stages(by_route={b"/typed": line.stages()})).useful


@pytest.mark.parametrize("last", [b"", wire.HEADER.pack(7, wire.CANCEL, 0, 1, 0) + b"1234567"])
def test_what_ends_the_stream_ends_the_worker(line: Line, last: bytes) -> None:
    intake = Intake(line.port, line.stages(decodes_ahead=True))
    before = threading.active_count()
    with intake:
        line.front.sendall(last)
        line.front.close()
        wait_until(lambda: threading.active_count() == before)
    with pytest.raises(wire.WireError if last else FrontGone):
        intake.next()
