"""Frames of HTTP/2 from bytes that arrive in pieces of any size, and the limits on frames and header blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from panglot.web.http2 import frames
from panglot.web.http2.budget import Budget
from panglot.web.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    HEADER,
    HEADER_SIZE,
    HEADERS,
    PADDED,
    PREFACE,
    PROTOCOL_ERROR,
    SETTINGS,
    ConnectionBroken,
)
from panglot_worker.line import wire

if TYPE_CHECKING:
    from panglot.web.http2.frame_actions import FrameActions
    from panglot.web.http2.stream import CallStream

LARGEST_FRAME = 1 << 20
"""The largest frame of DATA that clients may send."""
LARGEST_CONTROL = 1 << 14
"""The largest of another kind; longer headers come in several."""
CONTINUATIONS = 16
"""How many frames the headers of one call may come in."""
TURN = 128
"""Frames that are read in one turn of the loop. The rest waits for the next turn, behind other clients."""
HEADERS_PER_FRAME = 128
"""Bytes of headers that count as one frame, because they take as long."""


class HeaderBlock(NamedTuple):
    """Headers that have not come whole."""

    stream: int
    flags: int
    block: bytes
    frames: int


class FrameReader:
    """Finds the frames of one client, and hands each to `actions`."""

    def __init__(self, actions: FrameActions, budget: Budget, most_headers: int) -> None:
        self.actions = actions
        self.budget = budget
        self.most_headers = most_headers
        self.greeted = False
        """Whether the client has said that it speaks HTTP/2."""
        self.settled = False
        """Whether its first SETTINGS have come."""
        self.rest = b""
        """The beginning of a frame that has not come whole."""
        self.block: HeaderBlock | None = None
        self.receiving: CallStream | None = None
        """The stream of the DATA frame that is arriving; None where no stream takes it."""
        self._flags = 0
        self._left = self._padding = 0
        """Bytes of that frame which have not come."""
        self.is_stopped = False
        """Whether nothing more is read. A frame may close the connection while more frames of the same read wait."""
        self._turn = 0
        """Frames that may still be read in this turn of the loop."""

    @property
    def is_within(self) -> bool:
        """Whether a frame, or a block of headers, has begun to come and not ended; data aside."""
        return bool(self.rest) or self.block is not None

    def read(self, data: wire.Buffer, at: int = 0) -> int:
        """Read the frames that these bytes complete, as many as fit into a turn; returns where it stopped.

        Raises ConnectionBroken.
        """
        end = len(data)
        self._turn = TURN
        while at < end and not self.is_stopped:
            if self._turn <= 0:
                return at
            self._turn -= 1
            if self._left or self._padding:
                at = self._payload(data, at, end)
            elif self.rest:
                # No more than the rest of one control frame is copied: behind it may be a large read.
                more = bytes(data[at : at + HEADER_SIZE + LARGEST_CONTROL - len(self.rest)])
                joined = self.rest + more
                used = self._frame(joined, 0, len(joined))
                if not used:
                    self.rest = joined
                    return end
                at += used - len(self.rest)
                self.rest = b""
            else:
                after = self._frame(data, at, end)
                if after == at:
                    self.rest = bytes(data[at:end])
                    return end
                at = after
        return end

    def _frame(self, data: wire.Buffer, at: int, end: int) -> int:
        """Read the frame that begins here; returns where it ends, or `at` if it has not come whole."""
        if not self.greeted:
            return self._preface(data, at, end)
        if end - at < HEADER_SIZE:
            return at
        high, low, kind, flags, stream = HEADER.unpack_from(data, at)
        length: int = high << 8 | low
        stream &= 0x7FFFFFFF
        # Most frames pass by these three alone. One that has not come whole is checked again with its next bytes, so
        # the check must not count anything.
        if length > LARGEST_CONTROL or self.block is not None or not self.settled:
            self._check(kind, flags, stream, length)
        start = at + HEADER_SIZE
        # Data is passed on as it comes. Any other known frame is stored until it is whole: it is small.
        if kind == DATA:
            return self._begin_data(data, start, end, flags, stream, length) or at
        # RFC 9113, 4.1: a frame of an unknown kind is ignored. It is skipped without being stored.
        if kind > CONTINUATION:
            self.budget.spend()
            self.receiving, self._flags, self._left = None, 0, length
            return start
        if end - start < length:
            return at
        payload = bytes(data[start : start + length])
        if kind == HEADERS:
            self._add(HeaderBlock(stream, flags, frames.unpadded(flags, payload), 1), flags)
        elif kind == CONTINUATION:
            block = self.block
            if block is None:
                raise ConnectionBroken(PROTOCOL_ERROR, "a continuation of nothing")
            self.budget.spend()
            self._add(block._replace(block=block.block + payload, frames=block.frames + 1), flags)
        else:
            self.budget.spend()
            self.actions.control(kind, flags, stream, payload)
        return start + length

    def _preface(self, data: wire.Buffer, at: int, end: int) -> int:
        begun = bytes(data[at : min(end, at + len(PREFACE))])
        if not PREFACE.startswith(begun):
            raise NoPreface(PROTOCOL_ERROR, "this is no HTTP/2")
        if len(begun) < len(PREFACE):
            return at
        self.greeted = True
        self.actions.greet()
        return at + len(PREFACE)

    def _check(self, kind: int, flags: int, stream: int, length: int) -> None:
        """Refuse a frame that may not stand here, or is too large. Raises ConnectionBroken."""
        if not self.settled:
            if kind != SETTINGS or flags & frames.ACK:
                raise ConnectionBroken(PROTOCOL_ERROR, "the first frame must be SETTINGS")
            self.settled = True
        if length > LARGEST_FRAME:
            raise ConnectionBroken(FRAME_SIZE_ERROR, "a frame is too large")
        # RFC 9113, 6.2: no frame may come between the parts of a header block, of whatever stream.
        if self.block is not None and (kind != CONTINUATION or stream != self.block.stream):
            raise ConnectionBroken(PROTOCOL_ERROR, "headers are interrupted")
        if length > LARGEST_CONTROL and kind != DATA and kind <= CONTINUATION:
            raise ConnectionBroken(ENHANCE_YOUR_CALM, "a frame that is no data is too large")

    def _add(self, block: HeaderBlock, flags: int) -> None:
        """Add the next part of a header block, and act on it once it is whole."""
        # Before the last part has come: a block without end (CONTINUATION flood) must not fill the memory.
        if len(block.block) > self.most_headers or block.frames > CONTINUATIONS:
            raise ConnectionBroken(ENHANCE_YOUR_CALM, "the headers of a call are too large")
        if flags & END_HEADERS:
            self.block = None
            self._turn -= len(block.block) // HEADERS_PER_FRAME
            self.actions.headers(block.stream, block.flags, block.block)
        else:
            self.block = block

    # Data

    def _begin_data(self, data: wire.Buffer, start: int, end: int, flags: int, stream: int, length: int) -> int:
        """Begin a frame of data; returns where its data begins, or 0 while the length of its padding has not come."""
        padding = 0
        if flags & PADDED:
            if not length:
                raise ConnectionBroken(FRAME_SIZE_ERROR, "a padded frame has no padding")
            if start == end:
                return 0
            # The byte that tells the length is part of the padding.
            padding = data[start] + 1
            start += 1
            if padding > length:
                raise ConnectionBroken(PROTOCOL_ERROR, "padding is longer than its frame")
        # The whole length: padding counts against the windows too (RFC 9113, 6.1).
        self.receiving = self.actions.data_begins(stream, flags, length)
        self._flags, self._left, self._padding = flags, length - padding, max(0, padding - 1)
        if not self._left and not self._padding:
            self._end_data()
        return start

    def _payload(self, data: wire.Buffer, at: int, end: int) -> int:
        """Take what has come of a frame whose length is known; returns where that ends."""
        if self._left:
            stop = min(end, at + self._left)
            self._left -= stop - at
            if self.receiving is not None:
                self.actions.data(self.receiving, data[at:stop])
        else:
            stop = min(end, at + self._padding)
            self._padding -= stop - at
        if not self._left and not self._padding:
            self._end_data()
        return stop

    def _end_data(self) -> None:
        stream, self.receiving = self.receiving, None
        if stream is not None:
            self.actions.data_ends(stream, self._flags)


class NoPreface(ConnectionBroken):
    """The client speaks something else."""
