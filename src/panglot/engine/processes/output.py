"""What a script prints: logged line by line, up to a rate. The last lines are stored for the report of its death."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import cast

from panglot.terminal.text import visible
from panglot_worker.life.output_pipes import OutputPipes

TAIL = 40
LEAST_COST = 100
"""Bytes that a line counts for at least: an empty one is as much work to log as one of this length."""
COLOUR = re.compile(r"\x1b\[[0-9;]*[mKGJ]")
LINES_A_TURN = 100
"""Lines of one worker that are logged before the event loop turns to others."""


def settled(line: str) -> str:
    """The line as a terminal shows it in the end: without colours, and without overwritten text."""
    if line.isprintable():
        return line
    line = COLOUR.sub("", line).rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    shown: list[str] = []
    for character in line:
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


class ScriptOutput(asyncio.Protocol):
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
        self._skipping = False
        """Whether the beginning of the present line was cut or dropped, so that its rest is dropped too."""
        self._paused = False
        self._transport: asyncio.ReadTransport | None = None
        self.tail: deque[str] = deque(maxlen=TAIL)
        self.ended = asyncio.Event()
        self.native = OutputPipes(wanted=False)
        """The pipes that the worker reads itself while it lives."""
        self.wording: Callable[[str], str] = str
        """Rewords a line for the log: with the paths of this machine, where another machine wrote it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        now = self._clock()
        if now - self._window >= 1.0:
            self._window, self._used = now, 0
            self._tell_lost()
        self._rest += data
        self._take_turn()

    def _take_turn(self) -> None:
        """Log some lines. Nothing more is read while there are further ones."""
        self._log_lines(LINES_A_TURN)
        if self._transport is None or self._transport.is_closing():
            return
        more = b"\n" in self._rest
        if more:
            asyncio.get_running_loop().call_soon(self._take_turn)
        if more and not self._paused:
            # The pipe fills then, and the script waits when it prints: lines do not pile up here.
            self._transport.pause_reading()
        elif self._paused and not more:
            self._transport.resume_reading()
        self._paused = more

    def _log_lines(self, most: int) -> None:
        *lines, self._rest = self._rest.split(b"\n", most)
        for index, line in enumerate(lines):
            if not self._afford(len(line) + 1):
                self._lose(b"\n".join((*lines[index:], self._rest)))
                return
            self._emit(line)
        if b"\r" in self._rest and b"\n" not in self._rest:
            # A progress bar: overwritten text is dropped. The last is kept, and may be overwritten by the next bytes.
            again = b"\r" if self._rest.endswith(b"\r") else b""
            self._rest = b"\r" + self._rest.rstrip(b"\r").rpartition(b"\r")[2] + again
        # A line without an end would fill the memory: its beginning is logged now, and its rest is dropped.
        if len(self._rest) > self._longest and b"\n" not in self._rest:
            if self._afford(len(self._rest)):
                self._emit(self._rest)
                self._rest, self._skipping = b"", True
            else:
                self._lose(self._rest)

    def _afford(self, size: int) -> bool:
        self._used += max(size, LEAST_COST)
        return self._used <= self._rate

    def _lose(self, data: bytes) -> None:
        """Drop these bytes, and the rest of the line they end in. How many they were is logged within a second."""
        if not self._lost:
            asyncio.get_running_loop().call_later(1.0, self._tell_lost)
        self._lost += len(data)
        self._dropped(len(data))
        self._skipping = not data.endswith(b"\n")
        self._rest = b""

    def _emit(self, line: bytes) -> None:
        if self._skipping:
            self._skipping = False
            self._dropped(len(line))
            return
        if len(line) > self._longest:
            self._dropped(len(line) - self._longest)
            line = line[: self._longest] + b"..."
        text = visible(settled(line.decode("utf-8", "backslashreplace")), "\t")
        if line.strip() and not text.strip():
            # A progress bar that has wiped itself out.
            return
        text = self.wording(text)
        self.tail.append(text)
        self._line(text)

    def _tell_lost(self) -> None:
        if self._lost:
            self._line(
                f"... {self._lost} bytes of output dropped (more than {self._rate} bytes in a second; "
                f"a line counts as {LEAST_COST} at least)"
            )
            self._lost = 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Log all that was read and not logged yet, however much it is: no other turn follows."""
        self._transport = None
        self._rest += self.native.last_words()
        while b"\n" in self._rest:
            self._log_lines(LINES_A_TURN)
        if self._rest:
            self._emit(self._rest)
            self._rest = b""
        self._tell_lost()
        self.ended.set()
