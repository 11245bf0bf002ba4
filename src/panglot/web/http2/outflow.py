"""What leaves on a connection: within the windows that its client opens, at the pace it reads, streams in turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from panglot.web.http2.answers import DONE, DONE_START, MESSAGE, OPENING, OPENING_START, ending, opening
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
from panglot_worker import wire

if TYPE_CHECKING:
    from panglot.web.http2.stream import CallStream

JOIN_BELOW = 65536
"""Bytes of an answer that leave in one piece with its headers."""
AT_ONCE = 1 << 18
"""Bytes that are handed to the transport before we look whether it takes more."""
LARGEST = 1 << 20
"""The largest frame we send, whatever a client would take: others wait behind it."""


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
        self.blocked: dict[int, CallStream] = {}
        """Streams with messages that wait for a window, or for the client to read."""
        self.backlog = 0
        """Bytes of these."""
        self.paused = False
        """Whether the transport holds as much as it should."""
        self._lines: list[Any] = []
        self._queued = 0
        self._scheduled = False

    # Bytes

    def write(self, data: wire.Buffer) -> None:
        """Send bytes; everything said in one turn of the loop leaves in one go."""
        self._lines.append(data)
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Hand to the transport what was said."""
        self._scheduled = False
        lines, self._lines, self._queued = self._lines, [], 0
        if lines and self.transport is not None:
            if len(lines) == 1:
                self.transport.write(lines[0])
            else:
                self.transport.writelines(lines)

    # Answers

    def answer(self, stream: CallStream, body: wire.Buffer) -> bool:
        """Send the only message of an answer, and its end; whether all of it has left."""
        size = len(body) + MESSAGE.size
        fits = size <= self.window and size <= stream.window and size <= self.frame
        if not fits or size > JOIN_BELOW or self.blocked or self.paused:
            self.send(stream, body)
            return self.end(stream, 0, "")
        self.window -= size
        of_stream = number(stream.number)
        start = header(size, DATA, 0, stream.number) + MESSAGE.pack(0, len(body))
        self.write(b"".join((OPENING_START, of_stream, OPENING, start, body, DONE_START, of_stream, DONE)))
        return True

    def send(self, stream: CallStream, message: wire.Buffer) -> None:
        """Send a message, or what can be sent of it now."""
        if not stream.opened:
            stream.opened = True
            self.write(opening(stream.number))
        prefix = MESSAGE.pack(0, len(message))
        small = len(message) < JOIN_BELOW
        pieces = [memoryview(prefix + bytes(message))] if small else [memoryview(prefix), memoryview(message)]
        if not stream.pending:
            stream.moved = self.loop.time()
        stream.pending.append(pieces)
        stream.waiting += len(message) + len(prefix)
        self.backlog += len(message) + len(prefix)
        if stream.number not in self.blocked:
            self.blocked[stream.number] = stream
            self.go_on()

    def end(self, stream: CallStream, code: int, sentence: str) -> bool:
        """End an answer once its messages have left; whether that is now.

        After a failure those that have not begun to leave stay behind.
        """
        last = ending(stream.number, code, sentence, stream.opened)
        if code:
            self._leave_behind(stream)
        if not stream.pending:
            self.write(last)
            return True
        stream.last_words = last
        return False

    def _leave_behind(self, stream: CallStream) -> None:
        while len(stream.pending) > stream.is_cut:
            size = sum(map(len, stream.pending.pop()))
            stream.waiting -= size
            self.backlog -= size
        if not stream.pending:
            self.blocked.pop(stream.number, None)

    def forget(self, stream: CallStream) -> None:
        """Send nothing more on a stream."""
        self.blocked.pop(stream.number, None)
        self.backlog -= stream.waiting
        stream.waiting = 0
        stream.pending.clear()

    # Windows

    def open(self, stream: CallStream | None, more: int) -> bool:
        """Take in that a client can take more; False where a stream would then have more than there can be."""
        if stream is None:
            self.window += more
            if self.window > LARGEST_WINDOW:
                raise ConnectionBroken(FLOW_CONTROL_ERROR, "the window of a connection is too large")
        else:
            stream.window += more
            if stream.window > LARGEST_WINDOW:
                return False
        if self.blocked:
            self.go_on()
        return True

    def resize(self, initial: int, streams: dict[int, CallStream]) -> None:
        """Have all windows begin with another size, those of present streams too. Raises ConnectionBroken."""
        change, self.initial = initial - self.initial, initial
        for stream in streams.values():
            stream.window += change
            if stream.window > LARGEST_WINDOW:
                raise ConnectionBroken(FLOW_CONTROL_ERROR, "the window of a stream is too large")
        self.go_on()

    def go_on(self) -> None:
        """Send what can be sent: a frame of each stream in turn."""
        moved = True
        while moved and self.blocked and self.window > 0 and not self.paused:
            moved = False
            for stream in list(self.blocked.values()):
                if self.window > 0 and not self.paused and stream.window > 0:
                    self._turn(stream)
                    moved = True

    def _turn(self, stream: CallStream) -> None:
        """Send one frame of a stream, and its end where that was the last."""
        message = stream.pending[0]
        view = message[0]
        size = min(len(view), self.window, stream.window, self.frame)
        self.write(header(size, DATA, 0, stream.number))
        self._lines.append(view[:size])
        stream.sent(size)
        self.window -= size
        self.backlog -= size
        self.budget.earn()
        if size < len(view):
            message[0] = view[size:]
        else:
            message.pop(0)
        stream.is_cut = bool(message)
        if not message:
            stream.pending.popleft()
            if not stream.pending:
                del self.blocked[stream.number]
                stream.drained()
        self._queued += size
        if self._queued > AT_ONCE:
            self.flush()
