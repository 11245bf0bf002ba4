"""Bodies of msgpack: with arrays as `msgpack_numpy` writes them, and the platform's tags for dates and such.

The package `msgpack` reads and writes them where the script's environment has it. Elsewhere the code below does.
"""

from __future__ import annotations

import datetime
import decimal
import struct
import sys
import uuid
from typing import Any, Callable, Dict, List, Tuple

try:
    import msgpack
except ImportError:
    msgpack = None

DEEPEST = 512


def loads(body: bytes) -> Any:
    """The value of a body. Raises ValueError for one that is no msgpack, and for arrays of Python objects."""
    if msgpack is not None:
        return msgpack.unpackb(body, object_hook=decoded)
    reader = _Reader(body)
    try:
        value = reader.value(0)
    except (struct.error, IndexError):
        raise ValueError("Unpack failed: incomplete input") from None
    if reader.at != len(body):
        raise ValueError("unpack(b) received extra data.")
    return value


def dumps(value: Any) -> bytes:
    """The body of a value. Raises TypeError for what cannot be sent."""
    if msgpack is not None:
        return bytes(msgpack.packb(value, default=encoded))
    out: List[bytes] = []
    _write(value, out, 0)
    return b"".join(out)


# Values that msgpack has no form for


def decoded(table: Dict[Any, Any]) -> Any:
    """The value that a mapping with a tag stands for; any other mapping as it is. Raises ValueError."""
    # Arrays of Python objects are pickles, which may run any code when they are read.
    if table.get(b"nd") is True and table.get(b"kind") == b"O":
        raise ValueError("unsupported payload")
    for tag, make in TAGS.items():
        if tag in table and b"data" in table:
            return make(table[b"data"])
    if b"nd" in table:
        return _array(table)
    if b"complex" in table:
        data = table[b"data"]
        return complex(data.decode() if isinstance(data, bytes) else data)
    return table


def _array(table: Dict[Any, Any]) -> Any:
    """An array or a number of numpy, which the script's environment must have."""
    import numpy

    kind: Any = table[b"type"]
    if table[b"nd"] is True:
        if table.get(b"kind") == b"V":
            kind = [tuple(_text(part) if isinstance(part, bytes) else part for part in field) for field in kind]
        return numpy.ndarray(buffer=table[b"data"], dtype=_dtype(numpy, kind), shape=tuple(table[b"shape"]))
    return numpy.frombuffer(table[b"data"], dtype=_dtype(numpy, kind))[0]


def _dtype(numpy: Any, kind: Any) -> Any:
    dtype = numpy.dtype(_text(kind) if isinstance(kind, bytes) else kind)
    if dtype.hasobject:
        raise ValueError("unsupported payload")
    return dtype


def _text(part: bytes) -> str:
    return part.decode("utf-8")


def _delta(data: Any) -> datetime.timedelta:
    days, seconds, microseconds = data
    return datetime.timedelta(days=days, seconds=seconds, microseconds=microseconds)


def _moment(text: str) -> datetime.datetime:
    # Before CPython 3.11, fromisoformat knows no Z.
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


TAGS: Dict[bytes, Callable[[Any], Any]] = {
    b"__dt_datetime_iso__": _moment,
    b"__dt_date_iso__": datetime.date.fromisoformat,
    b"__dt_time_iso__": datetime.time.fromisoformat,
    b"__dt_timedelta__": _delta,
    b"__decimal__": decimal.Decimal,
    b"__uuid__": uuid.UUID,
}


def encoded(value: Any) -> Any:
    """The mapping that stands for a value. Raises TypeError."""
    if isinstance(value, datetime.datetime):
        text = value.isoformat()
        return {b"__dt_datetime_iso__": True, b"data": text[:-6] + "Z" if text.endswith("+00:00") else text}
    if isinstance(value, datetime.date):
        return {b"__dt_date_iso__": True, b"data": value.isoformat()}
    if isinstance(value, datetime.time):
        if value.utcoffset() is not None:
            raise ValueError("Cannot represent timezone-aware times.")
        return {b"__dt_time_iso__": True, b"data": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {b"__dt_timedelta__": True, b"data": (value.days, value.seconds, value.microseconds)}
    if isinstance(value, decimal.Decimal):
        return {b"__decimal__": True, b"data": str(value)}
    if isinstance(value, uuid.UUID):
        return {b"__uuid__": True, b"data": str(value)}
    if isinstance(value, complex):
        return {b"complex": True, b"data": repr(value)}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        kind = value.dtype.descr if value.dtype.kind == "V" else value.dtype.str
        mark = b"V" if value.dtype.kind == "V" else b""
        return {b"nd": True, b"type": kind, b"kind": mark, b"shape": value.shape, b"data": value.tobytes()}
    if numpy is not None and isinstance(value, (numpy.bool_, numpy.number)):
        return {b"nd": False, b"type": value.dtype.str, b"data": value.tobytes()}
    raise TypeError("can not serialize '%s' object" % type(value).__name__)


# Without the package


class _Reader:
    """Reads values one after another."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def number(self, form: str) -> Any:
        size = struct.calcsize(form)
        (value,) = struct.unpack_from(form, self.body, self.at)
        self.at += size
        return value

    def raw(self, size: int) -> bytes:
        if self.at + size > len(self.body):
            raise ValueError("Unpack failed: incomplete input")
        self.at += size
        return self.body[self.at - size : self.at]

    def value(self, depth: int) -> Any:
        """The next value. Raises ValueError, struct.error and IndexError where the body ends too early."""
        if depth > DEEPEST:
            raise ValueError("the body is nested deeper than %d levels" % DEEPEST)
        kind = self.body[self.at]
        self.at += 1
        if kind <= 0x7F:
            return kind
        if kind >= 0xE0:
            return kind - 256
        if kind <= 0x8F:
            return self.mapping(kind & 15, depth)
        if kind <= 0x9F:
            return self.sequence(kind & 15, depth)
        if kind <= 0xBF:
            return self.raw(kind & 31).decode("utf-8")
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind in SIZED:
            form, what = SIZED[kind]
            return getattr(self, what)(self.number(form), depth)
        raise ValueError("Unpack failed: a type of msgpack that is not taken: 0x%02x" % kind)

    def text(self, size: int, depth: int) -> str:
        return self.raw(size).decode("utf-8")

    def binary(self, size: int, depth: int) -> bytes:
        return self.raw(size)

    def sequence(self, size: int, depth: int) -> List[Any]:
        return [self.value(depth + 1) for _ in range(size)]

    def mapping(self, size: int, depth: int) -> Any:
        table = {}
        for _ in range(size):
            key = self.value(depth + 1)
            if not isinstance(key, (str, bytes)):
                raise ValueError("%s is not allowed for map key when strict_map_key=True" % type(key).__name__)
            table[key] = self.value(depth + 1)
        return decoded(table)


CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
SIZED: Dict[int, Tuple[str, str]] = {
    0xC4: (">B", "binary"), 0xC5: (">H", "binary"), 0xC6: (">I", "binary"), 0xD9: (">B", "text"),
    0xDA: (">H", "text"), 0xDB: (">I", "text"), 0xDC: (">H", "sequence"), 0xDD: (">I", "sequence"),
    0xDE: (">H", "mapping"), 0xDF: (">I", "mapping"),
}  # fmt: skip


def _write(value: Any, out: List[bytes], depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("recursion limit exceeded")
    if value is None or value is True or value is False:
        out.append(b"\xc0" if value is None else b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        _write_integer(value, out)
    elif isinstance(value, float):
        out.append(struct.pack(">Bd", 0xCB, value))
    elif isinstance(value, str):
        data = value.encode("utf-8")
        _write_size(len(data), out, ((31, 0xA0), (0xFF, 0xD9), (0xFFFF, 0xDA), (0xFFFFFFFF, 0xDB)))
        out.append(data)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _write_size(len(value), out, ((0xFF, 0xC4), (0xFFFF, 0xC5), (0xFFFFFFFF, 0xC6)))
        out.append(bytes(value))
    elif isinstance(value, (list, tuple)):
        _write_size(len(value), out, ((15, 0x90), (0xFFFF, 0xDC), (0xFFFFFFFF, 0xDD)))
        for each in value:
            _write(each, out, depth + 1)
    elif isinstance(value, dict):
        _write_size(len(value), out, ((15, 0x80), (0xFFFF, 0xDE), (0xFFFFFFFF, 0xDF)))
        for key, each in value.items():
            _write(key, out, depth + 1)
            _write(each, out, depth + 1)
    else:
        _write(encoded(value), out, depth + 1)


def _write_integer(value: int, out: List[bytes]) -> None:
    if -32 <= value <= 127:
        out.append(struct.pack(">b" if value < 0 else ">B", value))
        return
    forms = ((0xD0, ">Bb"), (0xD1, ">Bh"), (0xD2, ">Bi"), (0xD3, ">Bq"))
    if value >= 0:
        forms = ((0xCC, ">BB"), (0xCD, ">BH"), (0xCE, ">BI"), (0xCF, ">BQ"))
    for kind, form in forms:
        try:
            out.append(struct.pack(form, kind, value))
        except struct.error:
            continue
        return
    raise OverflowError("Integer value out of range")


def _write_size(size: int, out: List[bytes], forms: Tuple[Tuple[int, int], ...]) -> None:
    """The size before a value: in one byte with the type, where it is small and the type has such a form."""
    for most, kind in forms:
        if size <= most:
            short = most < 0xFF
            form = {0xFF: ">BB", 0xFFFF: ">BH", 0xFFFFFFFF: ">BI"}
            out.append(bytes((kind | size,)) if short else struct.pack(form[most], kind, size))
            return
    raise ValueError("the value is too large")
