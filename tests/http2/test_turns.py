"""A turn of the loop: what one client sends in one go keeps nobody else waiting, however many calls it has."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fuzz.http2_frames import Echo, Pipe
from panglot.web.grpc.services import Services
from panglot.web.http2.calls import AT_ONCE
from panglot.web.http2.connection import Http2Connection
from panglot.web.http2.frame_reader import TURN
from panglot.web.http2.frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW,
    LARGEST_WINDOW,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    entry,
    frame,
    number,
)
from panglot.web.http2.public_quota import PublicQuota
from support.http2 import INFER, LIVE, STREAM_INFER, block, infer, message
from support.still import still_front, still_model

WATCH = "/grpc.health.v1.Health/Watch"
HELLO = PREFACE + frame(SETTINGS, 0, 0)


class Talking:
    """A connection in this process, to a server whose engine gives back what it gets."""

    def __init__(self, token: bytes = b"") -> None:
        self.front = still_front(token=token)
        still_model(self.front).engine = Echo()
        self.pipe = Pipe()
        services, quota = Services(self.front), PublicQuota(self.front.quota)
        self.connection = Http2Connection(self.front, services, quota, asyncio.get_running_loop(), set())
        self.connection.connection_made(self.pipe)

    def hear(self, data: bytes) -> None:
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    def over(self) -> None:
        self.connection.connection_lost(None)
        assert self.front.quota.used == 0


def in_a_loop(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_many_frames_take_many_turns() -> None:
    async def look() -> None:
        talking = Talking()
        talking.hear(HELLO)
        await talking.settle()
        pong = frame(PING, ACK, 0, bytes(8))
        talking.hear(frame(PING, 0, 0, bytes(8)) * 700)
        turns = []
        before = len(talking.pipe.written)
        while talking.connection.deferred:
            assert talking.pipe.paused, "nothing more is read meanwhile"
            assert talking.front.quota.used > 0, "and what has come is counted"
            await asyncio.sleep(0)
            turns.append((len(talking.pipe.written) - before) // len(pong))
            before = len(talking.pipe.written)
        await talking.settle()
        assert max(turns) <= TURN
        assert len(turns) >= 700 // TURN
        assert talking.pipe.written.count(pong) == 700
        assert not talking.pipe.paused
        talking.over()

    in_a_loop(look)


def test_large_headers_count_as_many_frames() -> None:
    async def look() -> None:
        talking = Talking()
        headers = block(LIVE, **{f"x_{at}": b"y" * 100 for at in range(40)})
        calls = [frame(HEADERS, END_HEADERS | END_STREAM, at, headers) for at in range(1, 41, 2)]
        talking.hear(HELLO + b"".join(calls))
        assert talking.connection.actions.last < 20
        assert talking.connection.deferred
        await talking.settle()
        assert talking.connection.actions.last == 39
        talking.over()

    in_a_loop(look)


def test_a_client_that_leaves_while_its_frames_wait_leaves_nothing() -> None:
    async def look() -> None:
        talking = Talking()
        talking.hear(HELLO + frame(PING, 0, 0, bytes(8)) * 700)
        assert talking.connection.deferred
        talking.over()
        await talking.settle()

    in_a_loop(look)


def test_a_connection_that_is_ended_while_its_frames_wait_reads_on() -> None:
    async def look() -> None:
        talking = Talking()
        talking.hear(HELLO + frame(PING, 0, 0, bytes(8)) * 700)
        talking.connection.close(0, "that is all")
        assert not talking.connection.deferred
        assert not talking.pipe.paused
        await talking.settle()
        talking.over()

    in_a_loop(look)


def steps(act: Callable[[], None]) -> int:
    """How many functions of ours, or of Python's, are called."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


async def with_blocked(streams: int) -> Talking:
    """A connection with so many answers that wait for their windows, and as many calls that were refused."""
    talking = Talking()
    talking.hear(PREFACE + frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, 0)))
    for at in range(1, 2 * streams, 2):
        talking.hear(frame(HEADERS, END_HEADERS, at, block(INFER)))
        talking.hear(frame(DATA, END_STREAM, at, message(infer("still"))))
        await asyncio.sleep(0)
    await talking.settle()
    assert len(talking.connection.calls.streams) == streams
    talking.connection.budget.earn(1000)
    last = talking.connection.actions.last + 2
    for at in range(last, last + 2 * min(streams, 400), 2):
        talking.hear(frame(HEADERS, END_HEADERS, at, block("/no/Such")))
        await asyncio.sleep(0)
    await talking.settle()
    talking.connection.budget.earn(1000)
    return talking


ONE_FRAME = {
    "a window of the connection": frame(WINDOW_UPDATE, 0, 0, number(10)),
    "a window of a stream": frame(WINDOW_UPDATE, 0, 3, number(1)),
    "the same setting": frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, 0)),
    "a window that grows and shrinks": frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, 9) + entry(INITIAL_WINDOW, 0)),
    "data of a call that was refused": b"",
    "a ping": frame(PING, 0, 0, bytes(8)),
    "a reset": frame(RST_STREAM, 0, 5, number(8)),
}


@pytest.mark.parametrize("what", ONE_FRAME)
def test_a_frame_costs_the_same_however_many_calls_there_are(what: str) -> None:
    async def cost(streams: int) -> int:
        talking = await with_blocked(streams)
        sent = ONE_FRAME[what] or frame(DATA, 0, talking.connection.actions.last, b"x" * 2000)
        spent = steps(lambda: talking.hear(sent))
        assert not talking.connection.closing
        talking.over()
        return spent

    few, many = asyncio.run(cost(10)), asyncio.run(cost(600))
    assert many <= few + 40, (few, many)


def test_windows_that_all_open_at_once_are_used_in_several_turns() -> None:
    async def cost(streams: int) -> int:
        talking = await with_blocked(streams)
        spent = steps(lambda: talking.hear(frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, 1))))
        await talking.settle()
        assert talking.pipe.written.count(b"\0\0\x01\0\0") == streams, "each has sent its byte"
        talking.over()
        return spent

    few, many = asyncio.run(cost(100)), asyncio.run(cost(900))
    assert many < 1.5 * few, (few, many)


def test_calls_that_waited_for_their_client_are_begun_in_several_turns() -> None:
    async def look() -> None:
        talking = Talking()
        talking.hear(HELLO)
        await talking.settle()
        talking.connection.pause_writing()
        numbers = range(1, 1001, 2)
        for at in numbers:
            talking.hear(frame(HEADERS, END_HEADERS, at, block(INFER)))
            talking.hear(frame(DATA, END_STREAM, at, message(infer("still"))))
        calls = talking.connection.calls
        assert len(calls.deferred) == len(numbers)
        talking.connection.resume_writing()
        turns = [len(numbers) - len(calls.deferred)]
        while calls.deferred:
            before = len(calls.deferred)
            await asyncio.sleep(0)
            turns.append(before - len(calls.deferred))
        assert max(turns) <= AT_ONCE
        await talking.settle()
        assert not calls.streams, "all are answered"
        talking.over()

    in_a_loop(look)


def test_windows_that_open_again_and_again_by_single_bytes_are_paid_for() -> None:
    """One frame lets hundreds of streams go on."""

    async def look() -> None:
        talking = await with_blocked(900)
        for window in range(1, 50):
            talking.hear(frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, window)))
            await talking.settle()
        assert talking.connection.closing
        talking.over()

    in_a_loop(look)


def test_the_widest_window_may_have_gone() -> None:
    """What is remembered of windows in place of looking at each is put right before it ends a connection."""

    async def look() -> None:
        talking = Talking()
        talking.hear(HELLO + frame(HEADERS, END_HEADERS, 1, block(STREAM_INFER)))
        talking.hear(frame(WINDOW_UPDATE, 0, 1, number(LARGEST_WINDOW - 65535)))
        talking.hear(frame(RST_STREAM, 0, 1, number(8)))
        talking.hear(frame(HEADERS, END_HEADERS, 3, block(STREAM_INFER)))
        talking.hear(frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, 1 << 20)))
        assert not talking.connection.closing
        talking.hear(frame(WINDOW_UPDATE, 0, 3, number(LARGEST_WINDOW - (1 << 20))))
        talking.hear(frame(SETTINGS, 0, 0, entry(INITIAL_WINDOW, (1 << 20) + 1)))
        assert talking.connection.closing
        await talking.settle()
        talking.over()

    in_a_loop(look)


def test_nobody_remembers_a_client_that_was_refused_and_has_gone() -> None:
    """Whatever it was refused for: what is kept of it would grow with every call, and needs no token."""
    refused = (
        (INFER, message()), (INFER, message(infer("other"))), ("/no/Such", b""), (LIVE, message() * 2), (INFER, b"x"),
        (LIVE, message(b"", 1)), (LIVE, message(bytes(70_000))), (WATCH, message(b"\xff")), (STREAM_INFER, b"\x07" * 9),
    )  # fmt: skip

    async def look() -> None:
        talking = Talking(token=b"secret")
        gone = weakref.ref(talking.connection)
        talking.hear(HELLO)
        number = 1
        for given in ({}, {"authorization": b"Bearer secret"}):
            for path, data in refused:
                talking.hear(frame(HEADERS, END_HEADERS, number, block(path, **given)))
                talking.hear(frame(DATA, END_STREAM, number, data))
                number += 2
                await talking.settle()
        assert not talking.connection.calls.streams
        assert not talking.connection.closing
        talking.over()
        await talking.settle()
        del talking
        gc.collect()
        assert gone() is None

    in_a_loop(look)
