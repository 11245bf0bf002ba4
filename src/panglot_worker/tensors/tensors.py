"""Tensors by name, datatype and shape: from JSON or bytes, checked, and as lists, bytes or arrays of numpy."""

from __future__ import annotations

import math
import struct
from array import array
from itertools import chain
from typing import Any, Iterable, List, NamedTuple, Sequence, Tuple

from panglot_worker.errors import ClientError
from panglot_worker.tensors.datatypes import DATATYPES, LARGEST_FP32, Datatype

MOST_DIMENSIONS = 32
MOST_ELEMENTS = 1 << 31
LENGTH = struct.Struct("<I")

Shape = Tuple[int, ...]


class TensorSpec(NamedTuple):
    """A model's description of an input or an output. A size of -1 may be any."""

    name: str
    datatype: str
    shape: Sequence[int]


class Tensor(NamedTuple):
    """One tensor. `data` are the bytes of its elements, little-endian, row after row; of BYTES, the list of them."""

    name: str
    datatype: str
    shape: Shape
    data: Any

    def raw(self) -> Any:
        """The bytes of the elements, as they travel; of BYTES each with its length before it."""
        return joined(self.data) if self.datatype == "BYTES" else self.data

    def flat(self) -> List[Any]:
        """The elements in a row, as JSON has them. Raises UnicodeDecodeError for BYTES that are no text."""
        if self.datatype == "BYTES":
            return [str(element, "utf-8") for element in self.data]
        return _numbers(self.datatype, self.data)

    def nested(self) -> Any:
        """The elements as lists in lists; of a tensor without dimensions, the element."""
        return nested_elements(self.flat(), self.shape)

    def array(self) -> Any:
        """The tensor as an array of numpy that may be written to; of BYTES an array of objects. Needs numpy."""
        import numpy

        if self.datatype == "BYTES":
            array: Any = numpy.empty(len(self.data), object)
            array[:] = self.data
        elif self.datatype == "BF16":
            array = (numpy.frombuffer(self.data, "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = numpy.frombuffer(self.data, DATATYPES[self.datatype].numpy)
        flags = array.flags
        # Bodies in shared memory are read-only, and those behind a JSON text begin anywhere.
        if not (flags.writeable and flags.aligned):
            array = array.copy()
        return array.reshape(self.shape)


def joined(elements: Iterable[bytes]) -> bytes:
    """The elements of BYTES as they travel: a length of four bytes before each."""
    return b"".join(chain.from_iterable((LENGTH.pack(len(element)), element) for element in elements))


def count_of(shape: Sequence[int]) -> int:
    """How many elements a tensor of this shape has."""
    count = 1
    for size in shape:
        count *= size
    return count


def _numbers(datatype: str, data: Any) -> List[Any]:
    code, view = DATATYPES[datatype].code, memoryview(data)
    if code:
        return view.cast("B").cast(code).tolist() if len(view) else []  # type: ignore[call-overload]
    if datatype == "FP16":
        return list(struct.unpack("<%de" % (len(view) // 2), view))
    halves = array("H", bytes(view))
    return memoryview(array("I", [half << 16 for half in halves])).cast("B").cast("f").tolist()


def nested_elements(flat: List[Any], shape: Shape) -> Any:
    """A row of elements cut into lists in lists."""
    if not shape:
        return flat[0]
    if not flat:
        return _empty(shape)
    for size in reversed(shape[1:]):
        flat = [flat[at : at + size] for at in range(0, len(flat), size)]
    return flat


def _empty(shape: Shape) -> List[Any]:
    """Nothing, in lists of this shape."""
    return [] if len(shape) == 1 else [_empty(shape[1:]) for _ in range(shape[0])]


# From requests


def known(name: str, datatype: Any) -> Datatype:
    """The datatype of an input. Raises ClientError when there is none of that name."""
    known = DATATYPES.get(datatype) if isinstance(datatype, str) else None
    if known is None:
        names = ", ".join(DATATYPES)
        raise ClientError("input '%s': there is no datatype %.40r; there are %s" % (name, datatype, names))
    return known


def checked_shape(name: str, shape: Any) -> Shape:
    """The shape of an input. Raises ClientError when it is none, or too large."""
    if type(shape) is not list or len(shape) > MOST_DIMENSIONS:
        raise ClientError("input '%s': the shape must be a list of at most %d sizes" % (name, MOST_DIMENSIONS))
    count = 1
    for size in shape:
        if type(size) is not int or not 0 <= size <= MOST_ELEMENTS:
            raise ClientError("input '%s': %.40r in its shape is no size" % (name, size))
        count *= size or 1
    if count > MOST_ELEMENTS:
        raise ClientError("input '%s': its shape has more than %d elements" % (name, MOST_ELEMENTS))
    return tuple(shape)


def from_raw(name: str, datatype: str, shape: Shape, raw: Any) -> Tensor:
    """The tensor of bytes that were sent; they are not copied. Raises ClientError when they do not fit the shape."""
    kind = known(name, datatype)
    if datatype == "BYTES":
        return from_elements(name, shape, split(name, raw))
    expected = count_of(shape) * kind.width
    if len(raw) != expected:
        about = (name, datatype, list(shape), expected, len(raw))
        raise ClientError("input '%s' of type %s and shape %s has %d bytes, and %d were sent" % about)
    if datatype == "BOOL" and bytes(raw).translate(None, b"\0\1"):
        raise ClientError("input '%s' is BOOL, and holds a byte that is neither 0 nor 1" % name)
    return Tensor(name, datatype, shape, raw)


def split(name: str, raw: Any) -> List[bytes]:
    """The elements of BYTES. Raises ClientError when a length leads beyond the end."""
    elements: List[bytes] = []
    at, end = 0, len(raw)
    while at < end:
        start = at + 4
        if start <= end:
            at = start + LENGTH.unpack_from(raw, at)[0]
        if start > end or at > end:
            raise ClientError("input '%s' ends inside of its element %d" % (name, len(elements)))
        elements.append(bytes(raw[start:at]))
    return elements


def from_elements(name: str, shape: Shape, elements: List[bytes]) -> Tensor:
    """A tensor of BYTES. Raises ClientError when the number of elements is not that of the shape."""
    check_count(name, shape, len(elements))
    return Tensor(name, "BYTES", shape, elements)


def check_count(name: str, shape: Shape, count: int) -> None:
    if count != count_of(shape):
        about = (name, list(shape), count_of(shape), count)
        raise ClientError("input '%s' of shape %s has %d elements, and %d were sent" % about)


def from_json(name: str, datatype: str, shape: Shape, data: Any) -> Tensor:
    """The tensor of a JSON list, nested or flat. Raises ClientError for elements of another kind or range."""
    kind = known(name, datatype)
    if not kind.holds:
        raise ClientError("input '%s': JSON has no form for %s; send it as binary data" % (name, datatype))
    if type(data) is not list:
        raise ClientError("input '%s': its data must be a list" % name)
    return from_values(name, kind, shape, flattened(name, data))


def from_values(name: str, kind: Datatype, shape: Shape, flat: List[Any]) -> Tensor:
    """The tensor of elements in a row, each checked. Raises ClientError."""
    check_count(name, shape, len(flat))
    if not set(map(type, flat)) <= kind.accepts:
        wrong = next(value for value in flat if type(value) not in kind.accepts)
        raise ClientError("input '%s' is %s, which holds %s, not %.60r" % (name, kind.name, kind.holds, wrong))
    if kind.name == "BYTES":
        return Tensor(name, kind.name, shape, [value.encode("utf-8") for value in flat])
    if kind.name == "BOOL":
        return Tensor(name, kind.name, shape, bytearray(flat))
    return from_numbers(name, kind, shape, flat)


def from_numbers(name: str, kind: Datatype, shape: Shape, numbers: List[Any]) -> Tensor:
    """The tensor of as many numbers as it has elements. Raises ClientError beyond its range, TypeError for its kind."""
    # `array` writes doubles beyond FP32 as infinity. The norm of many numbers may be too large where none of them is.
    if kind.name == "FP32" and not _norm(numbers) <= LARGEST_FP32:
        _refuse_beyond(name, kind, numbers, -LARGEST_FP32, LARGEST_FP32)
    try:
        return Tensor(name, kind.name, shape, memoryview(array(kind.code, numbers)).cast("B"))
    except OverflowError:
        _refuse_beyond(name, kind, numbers, kind.least, kind.most)
        raise


def _norm(numbers: List[Any]) -> float:
    """An upper bound of the absolute values, found in one call."""
    return math.hypot(*numbers) if numbers else 0.0


def _refuse_beyond(name: str, kind: Datatype, flat: List[Any], least: float, most: float) -> None:
    """Raises ClientError that names the first number outside of a range."""
    for value in flat:
        if not least <= value <= most:
            raise ClientError("input '%s': %.60r is beyond %s" % (name, value, kind.name))


def flattened(name: str, data: List[Any]) -> List[Any]:
    """The elements of lists in lists, in a row. Raises ClientError when the lists are of unequal length."""
    while data and type(data[0]) is list:
        kinds = set(map(type, data))
        if kinds != {list} or len(set(map(len, data))) > 1:
            raise ClientError("input '%s': its data is irregular: lists beside others of another length" % name)
        data = list(chain.from_iterable(data))
    return data
