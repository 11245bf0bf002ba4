"""What a script prints: read line by line, bounded, and kept for the day the worker dies."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TAIL = 40


class Output(asyncio.Protocol):
    """Splits a worker's output into lines. Beyond the rate, bytes are counted and dropped."""

    def __init__(
        self,
        line: Callable[[str], None],
        dropped: Callable[[int], None],
        clock: Callable[[], float],
        *,
        longest: int,
        rate: int,
    ) -> None:
        self._line = line
        self._dropped = dropped
        self._clock = clock
        self._longest = longest
        self._rate = rate
        self._window = clock()
        self._used = 0
        self._lost = 0
        self._rest = b""
        self._overlong = False
        self.tail: deque[str] = deque(maxlen=TAIL)
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        now = self._clock()
        if now - self._window >= 1.0:
            self._window, self._used = now, 0
            self._tell_lost()
        self._used += len(data)
        if self._used > self._rate:
            self._lost += len(data)
            self._dropped(len(data))
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._emit(line)
        if len(self._rest) > self._longest:
            self._emit(self._rest)
            self._rest, self._overlong = b"", True

    def _emit(self, line: bytes) -> None:
        if self._overlong:
            self._overlong = False
            self._dropped(len(line))
            return
        if len(line) > self._longest:
            self._dropped(len(line) - self._longest)
            line = line[: self._longest] + b"..."
        text = visible(line.decode("utf-8", "backslashreplace").rstrip("\r"))
        self.tail.append(text)
        self._line(text)

    def _tell_lost(self) -> None:
        if self._lost:
            self._line(f"... {self._lost} bytes of output dropped (more than {self._rate} bytes in a second)")
            self._lost = 0

    def connection_lost(self, exc: Exception | None) -> None:
        if self._rest:
            self._emit(self._rest)
            self._rest = b""
        self._tell_lost()
        self.ended.set()


def visible(text: str) -> str:
    """The text with control characters made harmless; tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in text)
