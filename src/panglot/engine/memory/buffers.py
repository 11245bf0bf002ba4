"""Shared memory in which bodies, answers and results between pools lie, so that no socket has to carry them.

A buffer is a piece of a file in memory. Its size is a power of two, and each size has a stretch of the file to itself:
that costs addresses and no memory, since pages come when they are written and go back to the system by `trim`. Only the
front hands buffers out and takes them back.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import mmap
import os
import weakref
from collections.abc import Sequence

log = logging.getLogger("panglot.engine")

SMALLEST = max(14, (os.sysconf("SC_PAGE_SIZE") - 1).bit_length())
LARGEST = 30
"""Sizes of buffers, as powers of two: from 16 KiB, or a page, to 1 GiB."""


RELEASED = "this buffer was released"
EMPTY = memoryview(b"")
"""The view of a buffer after its release: code that still writes to it fails, and spoils no other body."""


class Block:
    """A piece of an arena's file, and the number of buffers that share it. Only `SharedBuffer` and `Arena` know it."""

    __slots__ = ("arena", "holders", "is_cold", "order", "start", "view")

    def __init__(self, arena: Arena, order: int, start: int, view: memoryview) -> None:
        self.arena = arena
        self.order = order
        self.start = start
        self.view = view
        self.holders = 0
        self.is_cold = False
        """Whether its pages have been given back to the system."""

    def has_been_sent(self, _: object) -> None:
        """Take away the holder that sent the bytes. Without holders the block is free again."""
        del self.arena.sent[self]
        self.holders -= 1
        if not self.holders:
            self.arena.release(self)


class SharedBuffer:
    """One owner's part in a block of shared memory: a call's body, a worker's input, the result it may write.

    A buffer has one owner at any time, and a second owner gets a buffer of its own by `share`. It is released exactly
    once: by `release`, which may be called again, by `exported`, or at the latest when nothing refers to it any more.
    So memory cannot leak where an error path forgets it, and cannot be given back twice while another call uses it.
    """

    __slots__ = ("_block", "address", "view")

    def __init__(self, block: Block) -> None:
        block.holders += 1
        self._block: Block | None = block
        self.view = block.view
        self.address = block.start + block.arena.mark + block.order
        """The buffer as a worker knows it: where it begins, and its size in the bits that are free there."""

    def share(self) -> SharedBuffer:
        """A buffer for another owner: the block is free again once both are released."""
        if self._block is None:
            raise ValueError(RELEASED)
        return SharedBuffer(self._block)

    def at(self, location: int) -> SharedBuffer | None:
        """The buffer that a worker knows by this address: this buffer, or None."""
        return self if location == self.address else None

    def is_in(self, arena: Arena) -> bool:
        return self._block is not None and self._block.arena is arena

    def body(self, size: int) -> Sequence[memoryview]:
        """A body of `size` bytes that lies here, in pieces."""
        return (self.view[:size],)

    def release(self) -> None:
        """Give the memory back. Nothing happens where that was done before."""
        block = self._block
        if block is None:
            return
        # Before the count: a second release, by hand or by `__del__`, must find nothing to do.
        self._block, self.view = None, EMPTY
        block.holders -= 1
        if not block.holders:
            block.arena.release(block)

    # The last net, for code that forgets. The garbage collector may run it on another thread: see `Arena.used`.
    __del__ = release

    def exported(self, length: int) -> memoryview:
        """The first `length` bytes, to be sent. The memory is in use until nothing refers to them any more."""
        block = self._block
        if block is None:
            raise ValueError(RELEASED)
        whole = block.arena.exporter(block)
        # The count of holders stays as it is: `has_been_sent` takes away the one that this buffer was.
        block.arena.sent[block] = weakref.ref(whole, block.has_been_sent)
        self._block, self.view = None, EMPTY
        return memoryview(whole).cast("B")[:length]


class Arena:
    """The buffers of one file in memory. Everything here runs on the event loop's thread."""

    def __init__(self, most: int, largest: int) -> None:
        """Room for `most` bytes of each size, up to buffers for `largest` bytes. Raises OSError or ValueError.

        They are raised when the system gives no such file, or no addresses for it.
        """
        orders = range(min(LARGEST, max(SMALLEST, (largest - 1).bit_length())) + 1)
        self._next: list[int] = []
        self._end: list[int] = []
        end = 0
        for order in orders:
            self._next.append(end)
            # Each size has room for `most` bytes. These are addresses only: a page costs memory once it is written.
            end += max(1, most >> order) << order if order >= SMALLEST else 0
            self._end.append(end)
        self.length = end
        self.mark = 0
        """The mark of this file in addresses, for workers that map several files; see `wire.FILE_BITS`."""
        self.fd = os.memfd_create("panglot-buffers", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, self.length)
            self._map = mmap.mmap(self.fd, self.length)
        except (OSError, ValueError, OverflowError):
            os.close(self.fd)
            raise
        self._whole = memoryview(self._map)
        # The block that was given back last is taken first: its pages are there already, and warm.
        self._free: list[list[Block]] = [[] for _ in orders]
        self._idle = [0 for _ in orders]
        """How many of each size nobody has needed since the last trim."""
        self._kinds = [ctypes.c_char * (1 << order) for order in orders]
        self.sent: dict[Block, weakref.ref[ctypes.Array[ctypes.c_char]]] = {}
        """Blocks that are being sent, each with a weak reference that notes the end of this. The references are stored
        here, because a weak reference that is collected calls nothing."""
        self._made = 0

    @property
    def used(self) -> int:
        """How many blocks are in use. Not counted up and down: forgotten buffers come back on any thread."""
        return self._made - sum(map(len, self._free))

    def take(self, size: int) -> SharedBuffer | None:
        """A buffer for `size` bytes; None when there is none."""
        order = max(SMALLEST, (size - 1).bit_length())
        if order >= len(self._free):
            return None
        free = self._free[order]
        if free:
            block = free.pop()
            block.is_cold = False
            # The lowest number of free blocks since the last trim: so many have not been needed.
            self._idle[order] = min(self._idle[order], len(free))
        else:
            start = self._next[order]
            if start >= self._end[order]:
                return None
            self._next[order] = start + (1 << order)
            block = Block(self, order, start, self._whole[start : start + (1 << order)])
            self._idle[order] = 0
            self._made += 1
        return SharedBuffer(block)

    def release(self, block: Block) -> None:
        # After `close` the lists are gone, and a block in them would keep the mapping alive.
        if self.fd >= 0:
            self._free[block.order].append(block)

    def exporter(self, block: Block) -> ctypes.Array[ctypes.c_char]:
        """An object over the memory of a block. It lives as long as any view of this memory."""
        return self._kinds[block.order].from_buffer(self._map, block.start)

    def trim(self) -> None:
        """Give the system the memory of blocks that were not needed since the last trim."""
        for order, free in enumerate(self._free):
            # From the beginning of the list: `take` uses its end, so these have been free the longest.
            for block in free[: self._idle[order]]:
                if not block.is_cold:
                    block.is_cold = True
                    with contextlib.suppress(OSError):  # Some sandboxes know no such thing.
                        self._map.madvise(mmap.MADV_REMOVE, block.start, 1 << order)
            self._idle[order] = len(free)

    @property
    def bytes(self) -> int:
        """How much memory the file takes now."""
        return os.fstat(self.fd).st_blocks * 512 if self.fd >= 0 else 0

    def for_worker(self) -> tuple[int, int]:
        return self.fd, self.length

    def close(self) -> None:
        """Close the file. Its memory goes when no worker has it mapped and no answer in it is being sent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            # The mapping keeps the file open too, and ends with the last that refers to it: no cycle may.
            self._free.clear()
            del self._whole, self._map


class Leases:
    """The buffers that one worker owns, by item: buffers that it reads, and buffers that it may write."""

    def __init__(self) -> None:
        self.looked_at: dict[int, SharedBuffer] = {}
        """Buffers that it reads, until it says FREE."""
        self.lent: dict[int, SharedBuffer] = {}
        """Buffers that it may put results in, until it replies."""

    def look(self, item_id: int, buffer: SharedBuffer) -> int:
        """Let the worker own a further buffer of an item's body; returns the address."""
        self.looked_at[item_id] = buffer.share()
        return buffer.address

    def release(self, item_id: int) -> None:
        """Note that the worker no longer looks at the body of an item."""
        buffer = self.looked_at.pop(item_id, None)
        if buffer is not None:
            buffer.release()

    def release_all(self) -> None:
        """Take all shared memory from a worker that is dead and has been waited for."""
        for buffer in (*self.looked_at.values(), *self.lent.values()):
            buffer.release()
        self.looked_at.clear()
        self.lent.clear()


def create(most: int, largest: int, what: str = "") -> Arena | None:
    """A new arena; None when the system has no memory for it: then everything travels by the workers' sockets.

    `what` names the use of the arena in a warning. Without it nothing is logged.
    """
    try:
        return Arena(most, largest)
    except (OSError, ValueError, OverflowError) as error:
        if what:
            log.warning("no shared memory %s (%s): they travel by the workers' sockets", what, error)
        return None
