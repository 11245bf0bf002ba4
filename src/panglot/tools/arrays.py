"""Arrays without numpy: a type, a shape and bytes, as `.npy` files and workers give them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CODES = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q",
    "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip
"""numpy's type codes in the words of `struct`."""
_DTYPE = re.compile(r"([<>=|])([a-zA-Z])(\d*)(\[.*\])?")


@dataclass(frozen=True)
class Array:
    """`dtype` is numpy's, such as `<f4`. Bytes are in the order of C unless `fortran`."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    fortran: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_number(self) -> bool:
        return self.dtype[1:] in CODES or self.dtype[1:] in ("c8", "c16")

    def values(self) -> Sequence[Any]:
        """The elements in the order of C: numbers and texts, and bytes for types that are neither.

        Raises ValueError when the bytes do not fit the type and shape.
        """
        found = _DTYPE.fullmatch(self.dtype)
        if found is None:
            raise ValueError(f"the type {self.dtype!r} is none of numpy's")
        flat = _elements(found[2] + found[3], ">" if found[1] == ">" else "<", self.data, self.size)
        if len(flat) != self.size:
            raise ValueError(f"{len(flat)} elements for the shape {self.shape}")
        return _c_order(flat, self.shape) if self.fortran and len(self.shape) > 1 else flat

    def place(self, index: int) -> str:
        """An element's index in the flat order of C, as `[1, 0, 4]`."""
        where = []
        for length in reversed(self.shape):
            index, rest = divmod(index, length)
            where.append(rest)
        return str(list(reversed(where)))

    def __str__(self) -> str:
        return f"{name(self.dtype)}{list(self.shape)}"


NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "U": "text", "S": "bytes", "V": "raw"}


def name(dtype: str) -> str:
    """`float32` for `<f4`."""
    found = _DTYPE.fullmatch(dtype)
    if found is None:
        return dtype
    kind, width = found[2], found[3]
    if kind in "iufc" and width:
        return f"{NAMES[kind]}{int(width) * 8}"
    return NAMES.get(kind, dtype)


def _elements(code: str, order: str, data: bytes, count: int) -> Sequence[Any]:
    if code in ("c8", "c16"):
        halves = _unpacked(order, "f" if code == "c8" else "d", data)
        return [complex(real, imaginary) for real, imaginary in zip(halves[::2], halves[1::2], strict=True)]
    if code in CODES:
        return _unpacked(order, CODES[code], data)
    if code[0] in "mM":
        return _unpacked(order, "q", data)
    width = len(data) // count if count else 0
    pieces = [data[start : start + width] for start in range(0, width * count, width)] if width else [b""] * count
    if code[0] == "U":
        return [piece.decode("utf-32-le" if order == "<" else "utf-32-be").rstrip("\0") for piece in pieces]
    return [piece.rstrip(b"\0") for piece in pieces] if code[0] == "S" else pieces


def _unpacked(order: str, code: str, data: bytes) -> tuple[Any, ...]:
    count, rest = divmod(len(data), struct.calcsize(order + code))
    if rest:
        raise ValueError(f"{len(data)} bytes do not hold whole elements")
    return struct.unpack(f"{order}{count}{code}", data)


def _c_order(flat: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    strides, step = [], 1
    for length in shape:
        strides.append(step)
        step *= length
    places = [0]
    for length, stride in zip(shape, strides, strict=True):
        places = [place + index * stride for place in places for index in range(length)]
    return [flat[place] for place in places]


def of_value(value: Any) -> Array | None:
    """A JSON value as an array: one number or text as an array of one; None for what has no array's shape."""
    shape: list[int] = []
    flat = [value]
    while flat and all(isinstance(entry, list) for entry in flat):
        lengths = {len(entry) for entry in flat}
        if len(lengths) != 1:
            return None
        shape.append(lengths.pop())
        flat = [element for entry in flat for element in entry]
    if not flat:
        return Array("<f8", tuple(shape), b"")
    return _packed(flat, tuple(shape) or (1,))


def _packed(flat: list[Any], shape: tuple[int, ...]) -> Array | None:
    kinds = {type(entry) for entry in flat}
    if kinds == {bool}:
        return Array("|b1", shape, bytes(flat))
    if kinds == {int} and all(-(2**63) <= entry < 2**63 for entry in flat):
        return Array("<i8", shape, struct.pack(f"<{len(flat)}q", *flat))
    if kinds in ({float}, {int, float}):
        return Array("<f8", shape, struct.pack(f"<{len(flat)}d", *flat))
    if kinds == {str}:
        width = max(1, *(len(entry) for entry in flat)) if len(flat) > 1 else max(1, len(flat[0]))
        data = b"".join(entry.ljust(width, "\0").encode("utf-32-le", "surrogatepass") for entry in flat)
        return Array(f"<U{width}", shape, data)
    return None
