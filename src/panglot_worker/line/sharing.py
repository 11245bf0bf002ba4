"""The memory a worker shares with the front: it reads bodies there, and writes results into buffers lent to it.

The front owns all of it (`panglot.engine.memory.buffers`). Bodies of requests are mapped to be read only: a script
that could change one would change it for a later run of the item. The results of another pool are in a private
mapping, so that a script may change it and only this process sees it. A buffer goes back to the front when nothing
of the script refers to it any more, which FREE tells, or when this process is dead.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from panglot_worker.line import wire

MAP_NORESERVE = 0x4000
MADV_DONTNEED = 4


class SharedMemory:
    """One worker's view of two files: one it reads its bodies from, one it is lent buffers of for its results."""

    def __init__(
        self, reads: Optional[Sequence[int]] = None, writes: Optional[Sequence[int]] = None, private: bool = False
    ) -> None:
        """Map both; each is an open file and its length. What cannot be mapped is read by copying, or not written."""
        self._fd, self._length = reads if reads else (-1, 0)
        self._private = private
        self._library = ctypes.CDLL(None, use_errno=True)
        self._address = _mapped(self._library, self._fd, self._length, private) if reads else 0
        self._writes = _mapped_to_write(*writes) if writes else None
        self._open: Dict[int, Tuple[int, Any]] = {}
        self._kinds: Dict[int, Any] = {}
        self.unseen: Deque[int] = deque()
        """Items whose bodies nothing refers to any more, and which the front does not know of yet."""
        self.lent: Dict[int, int] = {}
        """The locations of the buffers for results, by item."""

    def look(self, item_id: int, location: int, length: int) -> memoryview:
        """A view of a body in shared memory. The front reuses the buffer when nothing refers to the view any more."""
        start, size = _span(location, self._length)
        if length > size:
            raise wire.WireError("a body of %d bytes is in a buffer of %d" % (length, size))
        # The copy is ours, so the front may have the buffer back at once.
        if not self._address:
            self.unseen.append(item_id)
            return memoryview(os.pread(self._fd, length, start))
        # Making an array type is slow. Sizes are powers of two, so that there are only a few types to keep.
        kind = self._kinds.get(size)
        if kind is None:
            kind = self._kinds[size] = ctypes.c_char * size
        whole = kind.from_address(self._address + start)
        # The array is the one object that all views and arrays over this memory refer to, so its end is the end of all
        # of them. The callback may run on any thread and amid any call: it only appends, which is atomic.
        self._open[item_id] = (location, weakref.ref(whole, lambda _: self.unseen.append(item_id)))
        view = memoryview(whole).cast("B")[:length]
        return view if self._private else view.toreadonly()

    def settled(self) -> List[int]:
        """The items whose bodies nothing refers to any more, each returned once."""
        items: List[int] = []
        while True:
            try:
                item_id = self.unseen.popleft()
            except IndexError:  # Another thread may be telling the rest.
                return items
            items.append(item_id)
            location, _ = self._open.pop(item_id, (0, None))
            if location and self._private:
                # Pages a script has written are private copies by now; the next item must not see them.
                start, size = _span(location, self._length)
                self._library.madvise(ctypes.c_void_p(self._address + start), ctypes.c_size_t(size), MADV_DONTNEED)

    def put(self, location: int, buffers: Sequence[wire.Buffer]) -> bool:
        """Write a result into a lent buffer; False when it does not fit."""
        if self._writes is None:
            return False
        start, size = _span(location, len(self._writes))
        if sum(map(len, buffers)) > size:
            return False
        for buffer in buffers:
            self._writes[start : start + len(buffer)] = buffer
            start += len(buffer)
        return True


def _span(location: int, length: int) -> Tuple[int, int]:
    """Where a buffer begins, and its size. Raises WireError when the file has no such buffer."""
    start, size = location & ~wire.ORDER_BITS, 1 << (location & wire.ORDER_BITS)
    if not length or start + size > length:
        raise wire.WireError("there is no buffer %d" % location)
    return start, size


def _mapped(library: Any, fd: int, length: int, private: bool) -> int:
    """The address of a file, mapped to be read, or privately to be written too; 0 when that cannot be.

    Not by the module `mmap`: ctypes makes no objects over its mappings where these are read-only.
    """
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong,
    ]  # fmt: skip
    rights = mmap.PROT_READ | mmap.PROT_WRITE if private else mmap.PROT_READ
    kind = (mmap.MAP_PRIVATE if private else mmap.MAP_SHARED) | MAP_NORESERVE
    address = library.mmap(None, length, rights, kind, fd, 0)
    return 0 if address is None or address == ctypes.c_void_p(-1).value else int(address)


def _mapped_to_write(fd: int, length: int) -> Optional[mmap.mmap]:
    try:
        return mmap.mmap(fd, length)
    except (OSError, ValueError, OverflowError):
        return None
