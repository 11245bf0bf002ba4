"""Bodies in pieces that lie in several buffers: the answer of one model becomes the request to the next, uncopied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from panglot.engine.memory.buffers import EMPTY, Arena, SharedBuffer
from panglot_worker.line import calls, wire
from panglot_worker.line.calls import BodyPiece


class BufferPieces(SharedBuffer):
    """One owner's part in all the buffers that hold the pieces of a body. It is released like one buffer."""

    __slots__ = ("_buffers", "_came", "_rows")

    def __init__(self, rows: Sequence[BodyPiece], came: memoryview, buffers: list[SharedBuffer]) -> None:
        """`came` has the bytes of pieces that lie in no buffer. This object owns `buffers`, which hold the others."""
        self._block = None
        self._rows, self._came, self._buffers = rows, came, buffers
        self.view, self.address = EMPTY, wire.IN_PIECES

    def share(self) -> SharedBuffer:
        return BufferPieces(self._rows, self._came, [buffer.share() for buffer in self._buffers])

    def release(self) -> None:
        while self._buffers:
            self._buffers.pop().release()

    # Again: the `__del__` of the base class is the `release` of the base class, which would release nothing here.
    __del__ = release

    def at(self, location: int) -> SharedBuffer | None:
        return next((buffer for buffer in self._buffers if buffer.address == location), None)

    def is_in(self, arena: Arena) -> bool:
        return all(buffer.is_in(arena) for buffer in self._buffers)

    def body(self, size: int) -> Sequence[memoryview]:
        """All pieces in their order; `size` does not matter."""
        pieces: list[memoryview] = []
        came, buffers = 0, iter(self._buffers)
        for row in self._rows:
            if row.location:
                pieces.append(next(buffers).view[row.start : row.start + row.length])
            else:
                pieces.append(self._came[came : came + row.length])
                came += row.length
        return pieces


def received(body: memoryview, leased: Callable[[int], SharedBuffer | None]) -> BufferPieces:
    """The pieces of a body that a worker sent. It may name buffers that it was leased. Raises WireError."""
    rows, came = calls.pieces(body)
    buffers: list[SharedBuffer] = []
    for row in rows:
        if not row.location:
            continue
        lease = leased(row.lease)
        buffer = lease.at(row.location) if lease is not None else None
        if buffer is None or row.start + row.length > len(buffer.view):
            raise wire.WireError(f"{row.length} bytes of shared memory that was not lent")
        # Should a later piece be wrong, the buffers so far come back by themselves: nothing refers to them.
        buffers.append(buffer.share())
    return BufferPieces(rows, came, buffers)


def are_in(body: BufferPieces, arena: Arena | None) -> bool:
    """Whether all buffers of a body are in one arena, so that workers which map it can read them."""
    return arena is not None and body.is_in(arena)
