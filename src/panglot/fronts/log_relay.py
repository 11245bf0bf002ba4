"""The log of a server with several fronts: each writes to a pipe, and the parent writes whole lines to standard error.

Several writers to one pipe would tear lines of more than 4096 bytes. The parent forks, so it can have no thread that
writes. It writes only when a write does not wait. Lines that nobody reads are dropped and counted, as by a `Journal`.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import select
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TextIO

PIECE = 4096
"""Bytes that a pipe takes without waiting once it is reported as writable."""
READ = 65536
LONGEST_LINE = 1 << 20
"""Bytes of a line after which its beginning is passed on: a front that never ends a line must not fill the memory."""
PATIENCE = 1.0
"""Seconds in which the reader takes no byte; after them the end of the server no longer waits for the reader."""


class LogRelay:
    """Queues whole lines for a descriptor, at most `most` bytes. The parent's own log is written to `stream`."""

    def __init__(self, descriptor: int, most: int, selector: selectors.BaseSelector) -> None:
        self.dropped = 0
        """How many lines were dropped."""
        self.on_space: Callable[[int], None] = lambda lines: None
        """Called with the number of missing lines, once lines are written again."""
        self.stream: TextIO = io.TextIOWrapper(
            _Own(self, os.isatty(descriptor)), encoding="utf-8", errors="backslashreplace", write_through=True
        )
        self._descriptor = descriptor
        self._most = most
        self._selector = selector
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._reported = 0
        self._waits = False

    # In

    def pipe(self) -> tuple[FrontLog, int]:
        """The log of a new front, and the descriptor that the front writes to."""
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        return FrontLog(self, reads), writes

    def add(self, lines: bytes) -> None:
        """Queue whole lines, or drop them when the queue is full."""
        if self._bytes + len(lines) > self._most:
            self.dropped += lines.count(b"\n")
            return
        self._queue.append(lines)
        self._bytes += len(lines)
        self.write()

    # Out

    def write(self) -> None:
        """Write what can be written without waiting; the selector calls again when there can be more."""
        while self._queue and self._is_writable():
            piece = self._queue[0]
            try:
                taken = os.write(self._descriptor, piece[:PIECE])
            except BlockingIOError:
                break
            except OSError:
                # The reader has gone, or the disk is full; later lines may get through.
                self._forget()
                break
            self._bytes -= taken
            self._queue.popleft()
            if taken < len(piece):
                # Back to the head: no other line may come into the middle of this one.
                self._queue.appendleft(piece[taken:])
            elif self.dropped > self._reported:
                missing, self._reported = self.dropped - self._reported, self.dropped
                self.on_space(missing)
        self._watch(bool(self._queue))

    def _forget(self) -> None:
        self.dropped += sum(piece.count(b"\n") for piece in self._queue)
        # Not reported: a line about the loss would go to the same broken file.
        self._reported, self._bytes = self.dropped, 0
        self._queue.clear()

    def _is_writable(self, seconds: float = 0.0) -> bool:
        return bool(select.select([], [self._descriptor], [], seconds)[1])

    def _watch(self, wanted: bool) -> None:
        """Have the selector tell when the descriptor is writable. It cannot watch a file, which always is."""
        if wanted == self._waits:
            return
        with contextlib.suppress(PermissionError):
            if wanted:
                self._selector.register(self._descriptor, selectors.EVENT_WRITE, lambda events: self.write())
            else:
                self._selector.unregister(self._descriptor)
            self._waits = wanted

    def drain(self) -> None:
        """Wait until all is written, or the reader has stalled."""
        until = time.monotonic() + PATIENCE
        while self._queue and time.monotonic() < until:
            before = self._bytes
            if self._is_writable(0.05):
                self.write()
            if self._bytes < before:
                until = time.monotonic() + PATIENCE

    def install(self) -> None:
        """Send all output of this process to standard error through the relay from now on, to its end."""
        sys.stderr = self.stream
        atexit.register(self.drain)


class FrontLog:
    """The parent's end of the pipe that one front logs to."""

    def __init__(self, relay: LogRelay, descriptor: int) -> None:
        self.descriptor = descriptor
        self._relay = relay
        self._rest = b""

    def read(self) -> bool:
        """Pass on the whole lines that have come; False at the end of the pipe."""
        try:
            data = os.read(self.descriptor, READ)
        except (BlockingIOError, InterruptedError):
            return True
        lines, line_end, rest = (self._rest + data).rpartition(b"\n")
        self._rest = rest
        if lines or line_end:
            self._relay.add(lines + line_end)
        if self._rest and (not data or len(self._rest) > LONGEST_LINE):
            # The front ended within a line, or its line is too long to wait for.
            self._relay.add(self._rest + b"\n")
            self._rest = b""
        return bool(data)

    def close(self) -> None:
        """Pass on the last lines of the front, and close the pipe."""
        # Not until the end of the pipe: a process that a worker started may hold the other end open.
        for _ in range(64):
            before = len(self._rest)
            if not self.read() or len(self._rest) == before:
                break
        os.close(self.descriptor)


class _Own(io.RawIOBase):
    """A file that queues the parent's own lines."""

    name = "<log>"

    def __init__(self, relay: LogRelay, terminal: bool) -> None:
        self._relay = relay
        self._terminal = terminal
        self._rest = b""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._terminal

    def write(self, data: Any) -> int:
        # `logging` writes a record and its line end one after the other.
        lines, line_end, self._rest = (self._rest + bytes(data)).rpartition(b"\n")
        if line_end:
            self._relay.add(lines + line_end)
        return len(data)
