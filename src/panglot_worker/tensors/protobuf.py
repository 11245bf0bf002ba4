"""The part of the wire format of Protocol Buffers that the messages of this protocol need.

Written here so that a script's environment needs no protobuf, and a large tensor is not copied.
"""

from __future__ import annotations

import struct
from typing import Any, Iterator, List, Optional, Tuple

VARINT, EIGHT, LENGTH, FOUR = 0, 1, 2, 5
DOUBLE = struct.Struct("<d")
_MASK = (1 << 64) - 1


class Malformed(ValueError):
    """The bytes are no message."""


def varint(view: Any, at: int) -> Tuple[int, int]:
    """The number at an index, and the index behind it. Raises Malformed, or IndexError at the end."""
    number = shift = 0
    while shift < 70:
        byte = view[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & _MASK, at
        shift += 7
    raise Malformed("a number has more than ten bytes")


def fields(
    view: memoryview, until: Optional[int] = None, behind: Optional[Iterator[memoryview]] = None
) -> Iterator[Tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and a number or the bytes. Raises Malformed or IndexError.

    `until`: only the fields that begin before this byte. `behind`, for a message in several buffers: it gives the next
    buffer, which holds the bytes of this buffer's last field.
    """
    at, end = 0, len(view)
    last = end if until is None else min(until, end)
    while at < last:
        key = view[at]
        at += 1
        if key > 127:
            key, at = varint(view, at - 1)
        kind = key & 7
        if kind == VARINT:
            value, at = varint(view, at)
            yield key >> 3, kind, value
            continue
        if kind == LENGTH:
            size, at = varint(view, at)
        elif kind in (EIGHT, FOUR):
            size = 8 if kind == EIGHT else 4
        else:
            raise Malformed("wire type %d" % kind)
        stop = at + size
        # The writer puts the bytes of a large field into a buffer of their own: this one ends right before them.
        if behind is not None and stop > end == at and key >= 8:
            content = next(behind, b"")
            if len(content) != size:
                raise Malformed("a field has %d bytes, and the next buffer %d" % (size, len(content)))
            yield key >> 3, kind, content
            return
        if stop > end or key < 8:
            raise Malformed("a field leads beyond the end, or has no number")
        yield key >> 3, kind, view[at:stop]
        at = stop


def fields_of(body: Any) -> Iterator[Tuple[int, int, Any]]:
    """The fields of a message in one buffer, or in several, of which some hold the bytes of one field alone."""
    buffers = iter(getattr(body, "buffers", (body,)))
    for buffer in buffers:
        yield from fields(memoryview(buffer), None, buffers)


def signed(value: int) -> int:
    """A varint as the int32 or int64 it stands for."""
    return value - (1 << 64) if value >> 63 else value


def numbers(kind: int, value: Any) -> List[int]:
    """The varints of a repeated field, packed or not."""
    if kind == VARINT:
        return [value]
    if kind != LENGTH:
        raise Malformed("no list of numbers")
    raw = bytes(value)
    if not raw or max(raw) < 128:
        return list(raw)
    numbers, at, end = [], 0, len(raw)
    while at < end:
        number, at = varint(raw, at)
        numbers.append(number)
    return numbers


# Writing


def put(value: int) -> bytes:
    """A varint."""
    value &= _MASK
    if value < 128:
        return bytes((value,))
    packed = bytearray()
    while value > 127:
        packed.append(value & 127 | 128)
        value >>= 7
    packed.append(value)
    return bytes(packed)


def start(number: int, size: int) -> bytes:
    """The key and the length that stand before the bytes of a field."""
    return put(number << 3 | LENGTH) + put(size)


def message(number: int, raw: bytes) -> bytes:
    return start(number, len(raw)) + raw


def text(number: int, value: str) -> bytes:
    """A string; nothing where it is empty."""
    raw = value.encode("utf-8", "replace")
    return message(number, raw) if raw else b""


def packed(number: int, values: Any) -> bytes:
    """A list of whole numbers; nothing where it is empty."""
    return message(number, b"".join(map(put, values))) if values else b""
