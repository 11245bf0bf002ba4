"""Results from one pool of a pipeline to the next: a pickle, and its large buffers as they are.

This is the only module that unpickles anything. It reads only results that another worker of the same package wrote
for it; the front passes them on without reading. Large results lie in shared memory (`sharing`), others go by the
sockets. Only the worker that has the item may write, only into the buffer it was lent, and only until it replies; from
then on the buffer belongs to the reader.

    count u64, lengths u64 ... | the pickle | buffer | buffer ...       each | is the next multiple of 64
"""

from __future__ import annotations

import copyreg
import hashlib
import hmac
import importlib
import io
import pickle
import struct
import sys
from typing import Any, List, Sequence

from panglot_worker.line import wire

SHARE_ABOVE = 65536
ALIGN = 64
LENGTH = struct.Struct("<Q")


STAGES = ("preprocess", "inference", "postprocess")
SEAL = hashlib.sha256().digest_size


class NotSealed(Exception):
    """A result that no worker of this server wrote for this request: it must not be unpickled."""


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


def seal(key: bytes, border: str, head: bytes, pieces: Sequence[wire.Buffer]) -> bytes:
    """The proof that stands before a result between machines: for this request, and this border of pools."""
    # The head is under the seal too, with its length: a result cannot be moved to another request.
    checked = hmac.new(key, b"%s %d " % (border.encode(), len(head)) + head, hashlib.sha256)
    for piece in pieces:
        checked.update(piece)
    # Padded, so that the buffers behind it stay aligned for arrays.
    return checked.digest().ljust(ALIGN, b"\0")


def opened(key: bytes, border: str, head: bytes, body: wire.Buffer) -> memoryview:
    """The result behind its proof. Raises NotSealed."""
    view = memoryview(body)
    rest = view[ALIGN:]
    # Before anything is unpickled, and in constant time: a forged pickle runs any code.
    if not hmac.compare_digest(bytes(view[:ALIGN]), seal(key, border, head, [rest])):
        raise NotSealed("what came from the pool before was not written by a worker of this server")
    return rest


def border_before(stages: Sequence[str]) -> str:
    """The stage whose results a pool with these stages takes over."""
    return STAGES[STAGES.index(stages[0]) - 1]


def unpack(body: wire.Buffer) -> Any:
    """The value that the previous pool packed. Buffers are used where they are, if they may be written to."""
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
    return pickle.loads(stream, buffers=writable)  # noqa: S301  of another worker of this package; see the docstring of this module


def _aligned(length: int) -> int:
    return -(-length // ALIGN) * ALIGN


def _pickled(value: Any) -> List[memoryview]:
    """The pickle, then its large buffers as they are in memory."""
    buffers: List[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    # Protocol 5 hands large buffers out instead of copying them into the stream. 3.8 is the first to have it.
    pickler = pickle.Pickler(stream, 5, buffer_callback=buffers.append)
    # Never imported here: a script that has a tensor has imported torch already.
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
