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

log = logging.getLogger("panglot.engine")

SMALLEST = max(14, (os.sysconf("SC_PAGE_SIZE") - 1).bit_length())
LARGEST = 30
"""Sizes of buffers, as powers of two: from 16 KiB, or a page, to 1 GiB."""


class SharedBuffer:
    """One piece. Held by the call whose body lies in it, and by each worker it was sent to or lent to."""

    __slots__ = ("holders", "is_cold", "order", "owner", "start", "view")

    def __init__(self, owner: Arena, order: int, start: int, view: memoryview) -> None:
        self.owner = owner
        self.order = order
        self.start = start
        self.view = view
        self.holders = 1
        self.is_cold = False
        """Whether its pages have been given back to the system."""

    @property
    def address(self) -> int:
        """The buffer as a worker is told it: where it begins, and its size in the bits that are free there."""
        return self.start + self.order

    def retain(self) -> None:
        """Add a holder: the buffer is free again once each has released it."""
        self.holders += 1

    def release(self) -> None:
        """Take one holder away."""
        self.holders -= 1
        if not self.holders:
            self.owner.give_back(self)

    def exported(self, length: int) -> memoryview:
        """The first `length` bytes, to be sent. Whoever refers to them is the holder now, until nothing does."""
        whole = self.owner.exporter(self)
        self.owner.sent[self] = weakref.ref(whole, self._has_been_sent)
        return memoryview(whole).cast("B")[:length]

    def _has_been_sent(self, _: object) -> None:
        del self.owner.sent[self]
        self.release()


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
            end += max(1, most >> order) << order if order >= SMALLEST else 0
            self._end.append(end)
        self.length = end
        self.fd = os.memfd_create("panglot-buffers", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, self.length)
            self._map = mmap.mmap(self.fd, self.length)
        except (OSError, ValueError, OverflowError):
            os.close(self.fd)
            raise
        self._whole = memoryview(self._map)
        # The one given back last is taken first: its pages are there already, and warm.
        self._free: list[list[SharedBuffer]] = [[] for _ in orders]
        self._idle = [0 for _ in orders]
        """How many of each size nobody has needed since the last trim."""
        self._kinds = [ctypes.c_char * (1 << order) for order in orders]
        self.sent: dict[SharedBuffer, weakref.ref[ctypes.Array[ctypes.c_char]]] = {}
        """Those that are being sent. Nothing else refers to them: as garbage they would never hear that it is done."""
        self.used = 0

    def take(self, size: int) -> SharedBuffer | None:
        """A buffer for `size` bytes, which then has one holder; None when there is none."""
        order = max(SMALLEST, (size - 1).bit_length())
        if order >= len(self._free):
            return None
        free = self._free[order]
        if free:
            buffer = free.pop()
            buffer.holders, buffer.is_cold = 1, False
            self._idle[order] = min(self._idle[order], len(free))
        else:
            start = self._next[order]
            if start >= self._end[order]:
                return None
            self._next[order] = start + (1 << order)
            buffer = SharedBuffer(self, order, start, self._whole[start : start + (1 << order)])
            self._idle[order] = 0
        self.used += 1
        return buffer

    def give_back(self, buffer: SharedBuffer) -> None:
        self.used -= 1
        if self.fd >= 0:
            self._free[buffer.order].append(buffer)

    def exporter(self, buffer: SharedBuffer) -> ctypes.Array[ctypes.c_char]:
        """An object that is the memory of a buffer, and lives as long as anything refers to that."""
        return self._kinds[buffer.order].from_buffer(self._map, buffer.start)

    def trim(self) -> None:
        """Give the system the memory of those that nobody has needed since the last time."""
        for order, free in enumerate(self._free):
            for buffer in free[: self._idle[order]]:
                if not buffer.is_cold:
                    buffer.is_cold = True
                    with contextlib.suppress(OSError):  # Some sandboxes know no such thing.
                        self._map.madvise(mmap.MADV_REMOVE, buffer.start, 1 << order)
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
    """The buffers one worker holds, by item."""

    def __init__(self) -> None:
        self.looked_at: dict[int, SharedBuffer] = {}
        """Those it reads, until it says FREE."""
        self.lent: dict[int, SharedBuffer] = {}
        """Those it may put results in, until it replies."""

    def look(self, item_id: int, buffer: SharedBuffer) -> int:
        """Have the worker hold the buffer of an item's body, and return its address."""
        buffer.retain()
        self.looked_at[item_id] = buffer
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
    """Arena; None when the system gives none: everything then travels by the workers' sockets.

    `what` would have lain there, for a warning; without it there is none.
    """
    try:
        return Arena(most, largest)
    except (OSError, ValueError, OverflowError) as error:
        if what:
            log.warning("no shared memory %s (%s): they travel by the workers' sockets", what, error)
        return None
