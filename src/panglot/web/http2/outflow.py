"""What a connection sends: within the windows that its client opens, at the pace it reads, streams in turn."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from panglot.web.grpc.prefix import PREFIX
from panglot.web.http2.budget import Budget
from panglot.web.http2.frames import (
    DATA,
    FIRST_WINDOW,
    FLOW_CONTROL_ERROR,
    LARGEST_WINDOW,
    SMALLEST_FRAME,
    ConnectionBroken,
    header,
    number,
)
from panglot.web.http2.headers.answers import DONE, DONE_START, OPENING, OPENING_START, ending, opening
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream

JOIN_BELOW = 65536
"""Bytes up to which an answer is sent in one piece with its headers."""
AT_ONCE = 1 << 18
"""Bytes that are handed to the transport before we look whether it takes more."""
LARGEST = 1 << 20
"""The largest frame we send, whatever a client would take: others wait behind it."""
TURNS = 64
"""Frames that are sent in one turn of the loop."""
PER_DATA, SMALL_DATA = 3, 1024
"""What a frame of so much data adds to the budget: its client opens windows again, and may ask whether we are there."""
STALLED_PER_UNIT = 32
"""How many streams SETTINGS let go on for one unit of the budget."""


class Outflow:
    """The sending half of one connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget: Budget) -> None:
        self.loop = loop
        self.budget = budget
        self.transport: Any = None
        self.window = FIRST_WINDOW
        """Bytes of messages that the connection may still send."""
        self.initial = FIRST_WINDOW
        """With how many a stream begins."""
        self.frame = SMALLEST_FRAME
        self.ready: OrderedDict[int, CallStream] = OrderedDict()
        """Streams with messages, in the order of their turns. They wait for the connection's window, or for the client
        to read; their own windows may have shut since they came here."""
        self.stalled: dict[int, CallStream] = {}
        """Streams with messages that wait for their own windows."""
        self.backlog = 0
        """Bytes of all these messages."""
        self.paused = False
        """Whether the transport has as many unsent bytes as it may have."""
        self._lines: list[Any] = []
        self._queued = 0
        self._scheduled = False
        """Whether `flush` runs in the next turn of the loop."""
        self._is_scheduled = False
        """Whether `send_ready` runs in the next turn of the loop."""
        self._widest = 0
        """At least as much as any stream's `window`."""

    # Bytes

    def write(self, data: wire.Buffer) -> None:
        """Send bytes; everything written in one turn of the loop is sent at once."""
        self._lines.append(data)
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hand everything that was written to the transport."""
        self._scheduled = False
        lines, self._lines, self._queued = self._lines, [], 0
        # Without a transport the connection is over, and what was written is dropped.
        if lines and self.transport is not None:
            if len(lines) == 1:
                self.transport.write(lines[0])
            else:
                self.transport.writelines(lines)

    # Answers

    def answer(self, stream: CallStream, body: wire.Buffer) -> bool:
        """Send the only message of an answer, and its end; returns whether all of it is sent."""
        size = len(body) + PREFIX.size
        fits = size <= self.window and size <= self.initial + stream.window and size <= self.frame
        # Streams in `ready` wait for their turn: this answer joins them and does not overtake.
        if not fits or size > JOIN_BELOW or self.ready or self.paused:
            self.send(stream, body)
            return self.end(stream, 0, "")
        # Only the connection's window: the stream ends with this answer, and its own window with it.
        self.window -= size
        of_stream = number(stream.number)
        start = header(size, DATA, 0, stream.number) + PREFIX.pack(0, len(body))
        self.write(b"".join((OPENING_START, of_stream, OPENING, start, body, DONE_START, of_stream, DONE)))
        return True

    def send(self, stream: CallStream, message: wire.Buffer) -> None:
        """Send a message, or what can be sent of it now."""
        if not stream.opened:
            stream.opened = True
            self.write(opening(stream.number))
        prefix = PREFIX.pack(0, len(message))
        small = len(message) < JOIN_BELOW
        pieces = [memoryview(prefix + bytes(message))] if small else [memoryview(prefix), memoryview(message)]
        # The clock of a stalled stream starts when something begins to wait. The sweep compares it with
        # `time.monotonic`, which the loop's time is too.
        if not stream.pending:
            stream.last_sent = self.loop.time()
        stream.pending.append(pieces)
        stream.waiting += len(message) + len(prefix)
        self.backlog += len(message) + len(prefix)
        # With more than one, the stream is in `ready` or `stalled` already.
        if len(stream.pending) == 1:
            self.ready[stream.number] = stream
            self.send_ready()

    def end(self, stream: CallStream, code: int, sentence: str) -> bool:
        """End an answer once its messages are sent; returns whether they are.

        After a failure the messages that are not sent in part are dropped.
        """
        last = ending(stream.number, code, sentence, stream.opened)
        if code:
            self._drop_unsent(stream)
        if not stream.pending:
            self.write(last)
            return True
        stream.final_headers = last
        return False

    def _drop_unsent(self, stream: CallStream) -> None:
        # `is_partly_sent` counts as 1: a message whose length has been sent must be sent to its end.
        while len(stream.pending) > stream.is_partly_sent:
            size = sum(map(len, stream.pending.pop()))
            stream.waiting -= size
            self.backlog -= size
        if not stream.pending:
            self._drop(stream)

    def _drop(self, stream: CallStream) -> None:
        self.ready.pop(stream.number, None)
        self.stalled.pop(stream.number, None)

    def forget(self, stream: CallStream) -> None:
        """Send nothing more on a stream."""
        self._drop(stream)
        self.backlog -= stream.waiting
        stream.waiting = 0
        stream.pending.clear()

    # Windows

    def widen(self, more: int) -> None:
        """Widen the window of the connection by `more` bytes. Raises ConnectionBroken where it would be too large."""
        self.window += more
        if self.window > LARGEST_WINDOW:
            raise ConnectionBroken(FLOW_CONTROL_ERROR, "the window of a connection is too large")
        self.send_ready()

    def open(self, stream: CallStream, more: int) -> bool:
        """Widen the window of a stream by `more` bytes; False where it would be larger than HTTP/2 allows."""
        stream.window += more
        if self.initial + stream.window > LARGEST_WINDOW:
            return False
        if stream.window > self._widest:
            self._widest = stream.window
        # After smaller SETTINGS a window can be below zero, and one WINDOW_UPDATE need not open it.
        if self.initial + stream.window > 0 and self.stalled.pop(stream.number, None) is not None:
            self.ready[stream.number] = stream
            self.send_ready()
        return True

    def resize(self, initial: int, streams: dict[int, CallStream]) -> None:
        """Have all windows begin with another size, those of present streams too. Raises ConnectionBroken.

        Nothing is sent before `use_new_windows`. No stream is looked at: each knows how far its window is from this.
        """
        self.initial = initial
        if initial + self._widest > LARGEST_WINDOW:
            # The widest may have gone. This is seldom: another must become as wide before we look again.
            self._widest = max((stream.window for stream in streams.values()), default=0)
            if initial + self._widest > LARGEST_WINDOW:
                raise ConnectionBroken(FLOW_CONTROL_ERROR, "the window of a stream is too large")

    def use_new_windows(self) -> None:
        """Send what the windows allow after `resize` has widened them. Raises ConnectionBroken."""
        if self.stalled:
            self.budget.spend(len(self.stalled) // STALLED_PER_UNIT)
            # Some may still be shut: `send_ready` finds them, and puts them back.
            self.ready.update(self.stalled)
            self.stalled.clear()
            self.send_ready()

    def send_ready(self) -> None:
        """Send what can be sent: a frame of each stream in turn, as many as a turn of the loop may have."""
        for _ in range(TURNS):
            if not self.ready or self.window <= 0 or self.paused:
                return
            number, stream = self.ready.popitem(last=False)
            if self.initial + stream.window <= 0:
                self.stalled[number] = stream
            else:
                self._turn(stream)
        # Other connections have their turn first.
        if not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._send_later)

    def _send_later(self) -> None:
        self._is_scheduled = False
        self.send_ready()

    def _turn(self, stream: CallStream) -> None:
        """Send one frame of a stream, and its end where that was the last."""
        message = stream.pending[0]
        view = message[0]
        size = min(len(view), self.window, self.initial + stream.window, self.frame)
        self.write(header(size, DATA, 0, stream.number))
        # Straight behind its header: no other frame may come between the two.
        self._lines.append(view[:size])
        stream.sent(size)
        self.window -= size
        self.backlog -= size
        if size >= SMALL_DATA:
            self.budget.earn(PER_DATA)
        if size < len(view):
            message[0] = view[size:]
        else:
            message.pop(0)
        stream.is_partly_sent = bool(message)
        if not message:
            self.budget.earn()
            stream.pending.popleft()
        if stream.pending:
            self.ready[stream.number] = stream
        else:
            # May end the call and forget the stream: nothing below uses it.
            stream.drained()
        self._queued += size
        if self._queued > AT_ONCE:
            self.flush()
