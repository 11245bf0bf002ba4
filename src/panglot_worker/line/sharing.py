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

from panglot_worker.line import calls, wire
from panglot_worker.line.many_buffers import many

MAP_NORESERVE = 0x4000
MADV_DONTNEED = 4


class SharedMemory:
    """One worker's view of two files: it reads bodies from one, and writes results into buffers of the other.

    A model in a chain has further files: one in which its workers hand on results, and one of each model before it.
    """

    def __init__(
        self,
        reads: Optional[Sequence[int]] = None,
        writes: Optional[Sequence[int]] = None,
        private: bool = False,
        gives: Optional[Sequence[int]] = None,
        takes: Sequence[Sequence[int]] = (),
    ) -> None:
        """Map all files. Each is given by its descriptor and length; those of `takes` have a mark before these.

        Where a file cannot be mapped, bodies are copied from it, and results go by the socket.
        """
        self._fd, self._length = reads if reads else (-1, 0)
        self._private = private
        self._library = ctypes.CDLL(None, use_errno=True)
        self._address = _mapped(self._library, self._fd, self._length, private) if reads else 0
        self._writes = _mapped_to_write(*writes) if writes else None
        self._gives = _mapped_to_write(*gives) if gives else None
        self._files = {0: (self._fd, self._length, self._address)}
        for mark, fd, length in takes:
            self._files[mark] = (fd, length, _mapped(self._library, fd, length, False))
        self._open: Dict[int, Tuple[int, Any]] = {}
        self._kinds: Dict[int, Any] = {}
        self.unseen: Deque[int] = deque()
        """Items whose bodies nothing refers to any more; the front has not heard of them yet."""
        self.lent: Dict[int, int] = {}
        """The locations of the buffers for results, by item."""

    def look(self, item_id: int, location: int, length: int, came: Optional[memoryview] = None) -> wire.Buffer:
        """A view of a body in shared memory. The front reuses the buffer when nothing refers to the view any more.

        Of a body in pieces, `came` is what came with the frame.
        """
        if came is not None:
            return self._look_at_pieces(item_id, came)
        fd, whole_length, address = self._files.get(location & wire.FILE_BITS, (0, 0, 0))
        start, size = _span(location, whole_length)
        if length > size:
            raise wire.WireError("a body of %d bytes is in a buffer of %d" % (length, size))
        if not address:
            # The bytes are copied, so the front may have the buffer back at once.
            self.unseen.append(item_id)
            return memoryview(os.pread(fd, length, start))
        whole = self._array(address + start, size)
        whole.lease, whole.location = item_id, location
        # The array is the one object that all views and arrays over this memory refer to, so its end is the end of all
        # of them. The callback may run on any thread and amid any call: it only appends, which is atomic.
        self._open[item_id] = (location, weakref.ref(whole, lambda _: self.unseen.append(item_id)))
        view = memoryview(whole).cast("B")[:length]
        return view if self._private else view.toreadonly()

    def _array(self, address: int, size: int) -> Any:
        # Making an array type is slow. Sizes are powers of two, so that there are only a few types to keep.
        kind = self._kinds.get(size)
        if kind is None:
            kind = self._kinds[size] = ctypes.c_char * size
        return kind.from_address(address)

    def _look_at_pieces(self, item_id: int, came: memoryview) -> wire.Buffer:
        """A body in pieces, each a view. The front gets its buffers back when nothing refers to any piece."""
        rows, rest = calls.pieces(came)
        lease, views, at = Lease(), [], 0
        for _, location, first, length in rows:
            if not location:
                views.append(rest[at : at + length])
                at += length
                continue
            start, size = _span(location, self._length)
            if first + length > size:
                raise wire.WireError("a piece of %d bytes from %d on is in a buffer of %d" % (length, first, size))
            if not self._address:
                views.append(memoryview(os.pread(self._fd, length, start + first)))
                continue
            whole = self._array(self._address + start, size)
            # Each array holds the lease, which so ends with the last of them. `_open` must not hold it.
            whole.lease, whole.location, whole.together = item_id, location, lease
            views.append(memoryview(whole).cast("B")[first : first + length].toreadonly())
        self._open[item_id] = (0, weakref.ref(lease, lambda _: self.unseen.append(item_id)))
        return many(*views) if len(views) > 1 else views[0]

    def piece_of(self, view: wire.Buffer) -> Optional[calls.BodyPiece]:
        """Where a view lies in shared memory, as the front knows it. None: elsewhere, or its bytes may have changed."""
        whole: Any = view.obj if isinstance(view, memoryview) else None
        is_shared = isinstance(whole, ctypes.Array) and hasattr(whole, "lease")
        # A private mapping may have been written to, which the front does not see.
        if not is_shared or self._private:
            return None
        return calls.BodyPiece(whole.lease, whole.location, address_of(view) - ctypes.addressof(whole), len(view))

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
                # Pages that a script has written are private copies by now, and the next item must not see them. Before
                # FREE is sent: after it, the next body may come to lie here.
                start, size = _span(location, self._length)
                self._library.madvise(ctypes.c_void_p(self._address + start), ctypes.c_size_t(size), MADV_DONTNEED)

    def put(self, location: int, buffers: Sequence[wire.Buffer]) -> bool:
        """Write a result into a lent buffer. False when it does not fit, or there is no such memory here."""
        if location & wire.IN_READS:
            start, size = _span(location & ~wire.IN_READS, self._length)
            return sum(map(len, buffers)) <= size and self._write(start, buffers)
        target = self._gives if location & wire.FILE_BITS else self._writes
        if target is None:
            return False
        start, size = _span(location, len(target))
        if sum(map(len, buffers)) > size:
            return False
        for buffer in buffers:
            target[start : start + len(buffer)] = buffer
            start += len(buffer)
        return True

    def _write(self, start: int, buffers: Sequence[wire.Buffer]) -> bool:
        """Write to the file that bodies are in."""
        # Not by a mapping: in one that can be written, a stray write of the script could spoil bodies of other items.
        rest: List[memoryview] = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
        while rest:
            written = os.pwritev(self._fd, rest[:64], start)
            start += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if written:
                rest[0] = rest[0][written:]
        return True


class Lease:
    """All pieces of one body refer to it, so that it ends when the last of them does."""


class PyBuffer(ctypes.Structure):
    """Py_buffer of CPython."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


def address_of(view: wire.Buffer) -> int:
    """Where the bytes of a view lie in memory. ctypes itself tells that of writable ones alone."""
    buffer = PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), ctypes.c_int(0))
    try:
        return int(buffer.buf or 0)
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))


def _span(location: int, length: int) -> Tuple[int, int]:
    """Where a buffer begins, and its size. Raises WireError when the file has no such buffer."""
    start, size = location & wire.START_BITS, 1 << (location & wire.ORDER_BITS)
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
