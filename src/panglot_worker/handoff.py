"""What one pool of a row hands to the next: a pickle, and the large buffers in it as they are.

This is the only place where anything is unpickled, and it reads nothing but what another worker of the same package
wrote for it; the front passes it on blind. Large results lie in shared memory (`sharing`), others go by the sockets.
Who may write: only the worker that holds the item, only into the berth it was lent, and only until it replies; by then
the berth is the reader's.

    count u64, lengths u64 ... | the pickle | buffer | buffer ...       each | is the next multiple of 64
"""

from __future__ import annotations

import copyreg
import importlib
import io
import pickle
import struct
import sys
from typing import Any, List

from panglot_worker import wire

SHARE_ABOVE = 65536
ALIGN = 64
LENGTH = struct.Struct("<Q")


class CannotHandOver(Exception):
    """A stage's result cannot be sent to another process."""


def pack(value: Any) -> List[wire.Buffer]:
    """The body for the next pool, in pieces. Raises CannotHandOver."""
    buffers = _pickled(value)
    table = b"".join(LENGTH.pack(number) for number in (len(buffers), *map(len, buffers)))
    pieces: List[wire.Buffer] = []
    for piece in [memoryview(table), *buffers]:
        pieces += [piece, bytes(_aligned(len(piece)) - len(piece))]
    return pieces


def unpack(body: wire.Buffer) -> Any:
    """What the previous pool packed. Buffers are used where they are, if they may be written to."""
    view = memoryview(body)
    (count,) = LENGTH.unpack_from(view)
    lengths = [LENGTH.unpack_from(view, (1 + n) * LENGTH.size)[0] for n in range(count)]
    start = _aligned((1 + count) * LENGTH.size)
    views = []
    for length in lengths:
        views.append(view[start : start + length])
        start += _aligned(length)
    stream, buffers = views[0], views[1:]
    # Scripts may work in place, as they may where all stages are one process.
    writable = [buffer if not buffer.readonly else bytearray(buffer) for buffer in buffers]
    return pickle.loads(stream, buffers=writable)


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
        raise CannotHandOver("its result cannot be sent to another process: %s" % error) from error
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
