"""Any value as a flat list of arrays, numbers and texts, each with its path in the value.

Nothing is imported: an array can only be there if its library is.
"""

from __future__ import annotations

import array
import dataclasses
import io
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

MOST_BYTES = 256 * 1024 * 1024
DEEPEST = 64


class Leaf(NamedTuple):
    """One array, number or text of a value. An array has `dtype` and `shape` as numpy words them, and `data`.

    Anything else has a `value` that JSON can hold. `note` names the type it had.
    """

    path: str
    dtype: str = ""
    shape: Tuple[int, ...] = ()
    data: bytes = b""
    value: Any = None
    note: str = ""

    def row(self, blobs: List[bytes]) -> Any:
        """The leaf as JSON; its bytes go to `blobs`."""
        row = {"path": self.path, "note": self.note}
        if not self.dtype:
            return {**row, "value": self.value}
        blobs.append(self.data)
        return {**row, "dtype": self.dtype, "shape": self.shape, "size": len(self.data)}


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[Leaf]:
    """The leaves of a value, in order. A value of an unknown type is a leaf with a note of its type."""
    if value is None or type(value) in (bool, int, float, str):
        yield Leaf(path, value=value)
        return
    if type(value) in (dict, list, tuple) and not value:
        yield Leaf(path, value={} if type(value) is dict else [])
        return
    whole = _bytes(value)
    if whole is not None:
        yield _bounded(Leaf(path, "|u1", (len(whole),), whole, note=type(value).__name__))
        return
    ndarray = as_array(value)
    if ndarray is not None:
        yield from _array(ndarray, value, path, depth)
        return
    numbers = _numbers(value)
    if numbers is not None:
        yield _bounded(numbers._replace(path=path))
        return
    children = None if depth > DEEPEST else _children(value)
    if children is None:
        yield Leaf(path, note=type(value).__name__)
        return
    for name, child in children:
        yield from leaves(child, _join(path, name), depth + 1)


def _join(path: str, name: str) -> str:
    return path + name if name.startswith("[") or not path else path + "." + name


def _bounded(leaf: Leaf) -> Leaf:
    if len(leaf.data) <= MOST_BYTES:
        return leaf
    return Leaf(leaf.path, note="%s of %d bytes, too large to compare" % (leaf.note or leaf.dtype, len(leaf.data)))


def _bytes(value: Any) -> Optional[bytes]:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, memoryview):
        return value.tobytes()
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    inner = getattr(value, "bytes", None)
    if isinstance(inner, bytes) and hasattr(value, "type"):
        return inner
    return None


def as_array(value: Any) -> Any:
    """The value as a numpy array, if it is one to its library; None otherwise."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return numpy.asarray(value)
    for name in ("detach", "cpu"):
        step = getattr(value, name, None)
        if callable(step) and hasattr(value, "numpy"):
            value = step()
    for name in ("asnumpy", "numpy"):
        convert = getattr(value, name, None)
        if callable(convert) and hasattr(value, "dtype"):
            try:
                return numpy.asarray(convert())
            except TypeError:
                # bfloat16 has no counterpart in numpy.
                return numpy.asarray(value.float().numpy())
    if hasattr(value, "__array_interface__") or (hasattr(value, "__array__") and hasattr(value, "shape")):
        return numpy.asarray(value)
    return None


def _array(ndarray: Any, value: Any, path: str, depth: int) -> Iterator[Leaf]:
    if ndarray.dtype.hasobject:
        yield from leaves(ndarray.tolist(), path, depth + 1)
        return
    data = ndarray.tobytes()
    yield _bounded(Leaf(path, ndarray.dtype.str, tuple(ndarray.shape), data, note=type(value).__name__))


def _numbers(value: Any) -> Optional[Leaf]:
    """Nested lists of numbers as one array; None when they are anything else, or of unequal lengths."""
    if not isinstance(value, (list, tuple)) or not value:
        return None
    shape: List[int] = []
    flat: List[Any] = list(value)
    shape.append(len(flat))
    while flat and isinstance(flat[0], (list, tuple)):
        length = len(flat[0])
        if not length or not all(isinstance(row, (list, tuple)) and len(row) == length for row in flat):
            return None
        shape.append(length)
        flat = [entry for row in flat for entry in row]
    kinds = {type(entry) for entry in flat}
    if kinds == {bool}:
        return Leaf("", "|b1", tuple(shape), bytes(flat), note="list")
    if kinds == {int}:
        if all(-(2**63) <= entry < 2**63 for entry in flat):
            return Leaf("", _native("i8"), tuple(shape), array.array("q", flat).tobytes(), note="list")
        return None
    if kinds in ({float}, {float, int}):
        try:
            return Leaf("", _native("f8"), tuple(shape), array.array("d", flat).tobytes(), note="list")
        except OverflowError:
            return None
    return None


def _native(code: str) -> str:
    return ("<" if sys.byteorder == "little" else ">") + code


def _children(value: Any) -> Optional[List[Tuple[str, Any]]]:
    if isinstance(value, dict):
        return [(str(name), child) for name, child in value.items()]
    names = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(names, tuple):
        return list(zip(names, value))
    if isinstance(value, (list, tuple)):
        return [("[%d]" % index, child) for index, child in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if type(value).__module__.startswith("PIL.") and hasattr(value, "tobytes"):
        return [("mode", value.mode), ("size", list(value.size)), ("pixels", value.tobytes())]
    return None
