"""What one pool of a row hands to the next: a pickle, with its large buffers in shared memory.

This is the only place where anything is unpickled, and it reads nothing but what another worker of the same package
wrote on its private socket; the front passes it on blind.

Shared memory is one file of equal berths for each border between two pools. The front owns it and says with every item
which berth the result may be put in. Who may write: only the worker that holds the item, only into that berth, and only
until it replies; by then the berth is the reader's. The reader looks at it where it is, in a private mapping, so that a
script which works in place changes nothing for whoever may have to run the item again. A berth goes back to the front
when its reader says FREE, or is dead and has been waited for.
"""

from __future__ import annotations

import copyreg
import ctypes
import importlib
import io
import mmap
import pickle
import struct
import sys
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from panglot_worker import wire

SHARE_ABOVE = 65536
ALIGN = 64
PREFIX = struct.Struct("<II")
LENGTH = struct.Struct("<Q")


class CannotHandOver(Exception):
    """A stage's result cannot be sent to another process."""


class SharedMemory(NamedTuple):
    """One worker's mapping of a file with berths of one size."""

    mapping: mmap.mmap
    berths: int
    size: int

    def start(self, berth: int) -> int:
        """Where a berth begins. Raises WireError when there is no such berth."""
        if not 0 < berth <= self.berths:
            raise wire.WireError("there is no berth %d" % berth)
        return (berth - 1) * self.size


def writing(fd: int, berths: int, size: int) -> SharedMemory:
    """The mapping of a pool that writes: what it writes, the next pool sees."""
    return SharedMemory(mmap.mmap(fd, berths * size), berths, size)


def reading(fd: int, berths: int, size: int) -> SharedMemory:
    """The mapping of a pool that reads. It is private: whatever a script writes to it stays in this process."""
    return SharedMemory(mmap.mmap(fd, berths * size, access=mmap.ACCESS_COPY), berths, size)


class Handoff:
    """One worker's end of the borders: packs results for the next pool, unpacks those of the previous one."""

    def __init__(self, writes: Optional[SharedMemory] = None, reads: Optional[SharedMemory] = None) -> None:
        self.writes = writes
        self.reads = reads
        self._open: Dict[int, Tuple[int, Any]] = {}
        self._unseen: List[int] = []

    def pack(self, value: Any, berth: int) -> Tuple[wire.Buffer, bool]:
        """The body for the next pool, and whether the berth was used. Raises CannotHandOver."""
        buffers = _pickled(value)
        lengths = [len(buffer) for buffer in buffers]
        lines = b"".join(LENGTH.pack(length) for length in lengths)
        room = self.writes.size if berth and self.writes is not None else 0
        if sum(lengths) >= SHARE_ABOVE and sum(map(_aligned, lengths)) <= room:
            self._write(berth, buffers)
            return PREFIX.pack(len(buffers), berth) + lines, True
        return b"".join([PREFIX.pack(len(buffers), 0), lines, *buffers]), False

    def _write(self, berth: int, buffers: List[memoryview]) -> None:
        assert self.writes is not None
        start = self.writes.start(berth)
        for buffer in buffers:
            self.writes.mapping[start : start + len(buffer)] = buffer
            start += _aligned(len(buffer))

    def unpack(self, item_id: int, body: wire.Buffer) -> Any:
        """What the previous pool packed. A berth stays in use until nothing refers to it any more; see `settled`."""
        view = memoryview(body)
        count, berth = PREFIX.unpack_from(view)
        at = PREFIX.size + count * LENGTH.size
        lengths = [LENGTH.unpack_from(view, PREFIX.size + n * LENGTH.size)[0] for n in range(count)]
        if berth:
            view, at = self._look_at(item_id, berth, sum(map(_aligned, lengths))), 0
        views = []
        for length in lengths:
            views.append(view[at : at + length])
            at += _aligned(length) if berth else length
        stream, buffers = views[0], views[1:]
        # Scripts may work in place, as they may where all stages are one process.
        writable = [buffer if not buffer.readonly else bytearray(buffer) for buffer in buffers]
        return pickle.loads(stream, buffers=writable)

    def _look_at(self, item_id: int, berth: int, length: int) -> memoryview:
        """The berth's memory, as an object whose end tells that nothing of the script refers to it any more."""
        if self.reads is None:
            raise wire.WireError("an item of berth %d came to a worker that has none" % berth)
        start = self.reads.start(berth)
        whole = (ctypes.c_char * length).from_buffer(self.reads.mapping, start)
        self._open[item_id] = (berth, weakref.ref(whole, lambda _: self._unseen.append(item_id)))
        return memoryview(whole).cast("B")

    def settled(self) -> List[int]:
        """The items whose berths nothing refers to any more, each told once."""
        items, self._unseen = self._unseen, []
        for item_id in items:
            berth, _ = self._open.pop(item_id)
            if self.reads is not None:
                # Pages a script has written are private copies by now; the next item must not see them.
                self.reads.mapping.madvise(mmap.MADV_DONTNEED, self.reads.start(berth), self.reads.size)
        return items


def _aligned(length: int) -> int:
    return -(-length // ALIGN) * ALIGN


def _pickled(value: Any) -> List[memoryview]:
    """The pickle, then its large buffers as they lie in memory."""
    buffers: List[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, 5, buffer_callback=buffers.append)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor"):
        pickler.dispatch_table = {**copyreg.dispatch_table, torch.Tensor: _reduced_tensor}
    try:
        pickler.dump(value)
    except Exception as error:
        what = type(value).__name__
        raise CannotHandOver("its result (%s) cannot be sent to another process: %s" % (what, error)) from error
    return [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]


def _reduced_tensor(tensor: Any) -> Any:
    """A tensor in main memory travels like an array; torch's own way writes a whole file for each."""
    plain = tensor.device.type == "cpu" and not tensor.requires_grad and tensor.layout is sys.modules["torch"].strided
    if plain and tensor.is_contiguous():
        try:
            return (_tensor, (tensor.numpy(),))
        except TypeError:
            pass  # numpy has no such type, bfloat16 for one
    return tensor.__reduce_ex__(5)


def _tensor(array: Any) -> Any:
    return importlib.import_module("torch").from_numpy(array)
