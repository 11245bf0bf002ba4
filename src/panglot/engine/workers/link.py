"""The front's end of the socket to one worker, or to another front."""

from __future__ import annotations

import asyncio
import logging
import mmap
from collections.abc import Sequence
from typing import Protocol, cast

from panglot_worker.line import wire

log = logging.getLogger("panglot.engine")
BUFFER = 262144
"""Bytes of the fixed buffer; a longer frame gets one of its own."""
LAZY = 32 * 1024 * 1024
"""Frames that claim to be longer get memory that the system provides only as they arrive. For others it is slower."""


class LinkOwner(Protocol):
    """The object that gets the frames of a link: the record of a worker, or of another front."""

    def on_frame(self, kind: int, count: int, payload: memoryview) -> None:
        """Take a whole frame. Raises WireError when it cannot be one."""

    def longest(self, kind: int, count: int) -> int:
        """How many bytes a frame of this kind may have."""

    def on_paused(self, paused: bool) -> None:
        """Note that the other side has stopped reading, or reads again."""

    def on_lost(self) -> None:
        """Note that the link has ended."""


class Link(asyncio.BufferedProtocol):
    """Reads whole frames into a fixed buffer, or a large one into a buffer of its own. Any doubt closes the socket."""

    def __init__(self, worker: LinkOwner, generation: int) -> None:
        self.worker = worker
        self.generation = generation
        self.transport: asyncio.Transport | None = None
        self.doubt = ""
        """The fault in the stream, where the socket was closed because of it."""
        self.error: Exception | None = None
        """Why the socket is closed, where neither end has closed it."""
        self._buffer = memoryview(bytearray(BUFFER))
        self._filled = 0
        self._large: memoryview | None = None
        self._large_head = (0, 0)
        self._large_filled = 0
        self._reading_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport, self.error = None, exc
        # A dead worker is garbage only once cycles are collected; half an answer must not stay that long.
        self._large, self._filled = None, 0
        self.worker.on_lost()

    def pause_writing(self) -> None:
        self.worker.on_paused(True)

    def resume_writing(self) -> None:
        self.worker.on_paused(False)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large[self._large_filled :]
        # Never empty: `_split` leaves only a part of a frame that fits into the buffer.
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that were read, and close the socket if they break the protocol."""
        try:
            if self._large is not None:
                self._fill_large(nbytes)
            else:
                self._filled += nbytes
                self._split()
        except wire.WireError as error:
            self.doubt = str(error)
            self.close()
        except Exception:
            log.exception("what a worker said could not be dealt with")
            self.doubt = "the front failed on what it said"
            self.close()

    def _fill_large(self, nbytes: int) -> None:
        self._large_filled += nbytes
        assert self._large is not None
        if self._large_filled == len(self._large):
            payload, self._large = self._large, None
            self.worker.on_frame(*self._large_head, payload)

    def _split(self) -> None:
        """Pass on all whole frames in the fixed buffer, and move the rest to its beginning.

        `on_frame` may do anything, also close this link, or pause it: the loop then passes on what was read already,
        since a worker's last replies count although its socket is closed (see `StreamPause` for what that means).
        `_filled` is set after the loop alone. An exception of a frame leaves it as it was, which nobody sees: the
        link is closed then, and reads no more.
        """
        buffer, start, size = self._buffer, 0, wire.HEADER.size
        while self._filled - start >= size:
            length, kind, _flags, count, generation = wire.HEADER.unpack_from(buffer, start)
            if generation != self.generation and kind != wire.HELLO:
                raise wire.WireError(f"a frame of generation {generation} on the link of {self.generation}")
            stop = start + size + length
            if stop > self._filled:
                if size + length > BUFFER:
                    self._begin_large(kind, count, length, start + size)
                    return
                break
            # A copy: views of a payload live on in bodies and answers, while the next read writes to this buffer.
            self.worker.on_frame(kind, count, memoryview(bytes(buffer[start + size : stop])))
            start = stop
        rest = self._filled - start
        if start and rest:
            buffer[:rest] = bytes(buffer[start : self._filled])
        self._filled = rest

    def _begin_large(self, kind: int, count: int, length: int, start: int) -> None:
        longest = self.worker.longest(kind, count)
        # Checked before memory is taken: the length is the worker's word.
        if length > longest:
            name = wire.NAMES.get(kind, str(kind))
            raise wire.WireError(f"a {name} frame of {length} bytes, where at most {longest} may come")
        # A new buffer for each frame: views of it live on in bodies and answers, which so need no copy.
        self._large = memoryview(bytearray(length) if length <= LAZY else mmap.mmap(-1, length, mmap.MAP_PRIVATE))
        self._large_head = (kind, count)
        self._large_filled = self._filled - start
        self._large[: self._large_filled] = self._buffer[start : self._filled]
        self._filled = 0

    def send(self, buffers: Sequence[wire.Buffer]) -> None:
        """Write the pieces of a frame, without joining them."""
        # Not an error: the worker's death follows, and decides about its calls.
        if self.transport is None or self.transport.is_closing():
            return
        if len(buffers) == 1:
            self.transport.write(buffers[0])
        else:
            self.transport.writelines(buffers)

    def pause(self) -> None:
        """Stop reading. What has been read already is still passed on: see `StreamPause`, which alone calls this."""
        if not self._reading_paused and self.transport is not None and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._reading_paused and self.transport is not None and not self.transport.is_closing():
            self._reading_paused = False
            self.transport.resume_reading()

    def close(self) -> None:
        if self.transport is not None:
            # Now, and not when the loop tells of the end: a call that is sent meanwhile would be lost with the worker.
            self.worker.on_paused(True)
            # Not `close`, which waits until all is written: a hung worker may never read it.
            self.transport.abort()
