"""Writing to standard error without ever waiting for its reader."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

AT_ONCE = 65536
PATIENCE = 1.0
"""Seconds without a byte taken after which the end of the process no longer waits for the reader."""

monotonic = time.monotonic


class Journal(io.RawIOBase):
    """A file that queues what is written to it, at most `most` bytes; a thread writes the queue to a descriptor.

    A write that does not fit is dropped whole and counted in `dropped`. Once there is space again, `on_space` is told
    how many lines are missing at this place.
    """

    def __init__(self, descriptor: int, most: int, terminal: bool | None = None) -> None:
        """Write to a descriptor. `terminal`: whether a person reads it, where a pipe is between."""
        self.on_space: Callable[[int], None] = lambda lines: None
        self.dropped = 0
        """How many lines were dropped."""
        self._descriptor = descriptor
        self._terminal = os.isatty(descriptor) if terminal is None else terminal
        self._most = most
        self._reported = 0
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._moved = monotonic()
        self._changed = threading.Condition()
        threading.Thread(target=self._carry, name="panglot-journal", daemon=True).start()

    # As a file

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return self._terminal

    def write(self, data: Any) -> int:
        """Queue the bytes, or drop them when the queue is full. Never waits."""
        piece = bytes(data)
        with self._changed:
            if self._queued_bytes + len(piece) > self._most:
                self.dropped += _lines(piece)
            else:
                if not self._queued_bytes:
                    # The queue was empty: the reader's time counts from the first byte that it can take.
                    self._moved = monotonic()
                self._queue.append(piece)
                self._queued_bytes += len(piece)
                self._changed.notify()
        return len(piece)

    # The thread

    def _carry(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                piece = b"".join(self._queue)
                self._queue.clear()
            try:
                self._put(memoryview(piece))
            except OSError:
                # The reader has gone, or the disk is full. Perhaps not for ever.
                with self._changed:
                    self.dropped += _lines(piece)
                    # Counted as told: a line about the loss would go to the same broken file.
                    self._reported += _lines(piece)
            with self._changed:
                # Only now: bytes that are being written count as queued, for the limit and for `drain`.
                self._queued_bytes -= len(piece)
                lost, self._reported = self.dropped - self._reported, self.dropped
                self._changed.notify_all()
            # Outside of the lock: `on_space` takes the lock of logging, whose holders wait for this one in `write`.
            if lost:
                self.on_space(lost)

    def _put(self, rest: memoryview) -> None:
        while rest:
            try:
                taken = os.write(self._descriptor, rest[:AT_ONCE])
            except BlockingIOError:
                # Somebody who shares the descriptor made it so.
                select.select([], [self._descriptor], [], 1.0)
                continue
            self._moved = monotonic()
            rest = rest[taken:]

    def drain(self) -> None:
        """Wait until all is written, or the reader is seen to have stalled."""
        with self._changed:
            while self._queued_bytes and monotonic() - self._moved < PATIENCE:
                self._changed.wait(0.05)


def _lines(piece: bytes) -> int:
    return max(1, piece.count(b"\n"))


def begin(most: int, terminal: bool | None = None) -> Journal:
    """Let all that this process says on standard error from now on go through a journal. See `Journal`."""
    journal = Journal(2, most, terminal)
    sys.stderr = io.TextIOWrapper(journal, encoding="utf-8", errors="backslashreplace", write_through=True)
    atexit.register(journal.drain)
    return journal


def open_standard_files() -> None:
    """Put /dev/null where one of the three standard files was closed, so that no socket takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if number else "r", closefd=False))
