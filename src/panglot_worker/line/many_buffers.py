"""A body in several buffers."""

from __future__ import annotations

from typing import Union, cast

Buffer = Union[bytes, bytearray, memoryview]


class ManyBuffers:
    """A body in several buffers, which are never joined."""

    __slots__ = ("buffers", "length")

    def __init__(self, *buffers: Buffer) -> None:
        self.buffers = buffers
        self.length = sum(map(len, buffers))

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return b"".join(self.buffers)


def many(*buffers: Buffer) -> Buffer:
    """A ManyBuffers, typed as a buffer: the sender looks at its real type first."""
    return cast(Buffer, ManyBuffers(*buffers))
