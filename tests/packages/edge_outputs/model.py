"""Returns what JSON cannot hold, or only just; every item of a batch what it asks for."""

import array
import collections
import datetime
import decimal
import enum
import fractions
import uuid

from panglot import ClientError


class Colour(enum.Enum):
    RED = "red"


class Odd(dict):
    """A dict that is not quite one."""


class Hostile:
    """Fails wherever it is looked at."""

    def __getattr__(self, name):
        raise RuntimeError("looked at " + name)

    def __repr__(self):
        raise RuntimeError("shown")


def numpy_value(name):
    import numpy

    numpy.seterr(all="ignore")
    return {
        "float16": lambda: numpy.float16(0.5),
        "float16 inf": lambda: numpy.float16(1e6),
        "float32": lambda: numpy.float32(0.1),
        "longdouble": lambda: numpy.longdouble(0.5),
        "int8": lambda: numpy.int8(-128),
        "int64": lambda: numpy.int64(2**63 - 1),
        "uint64": lambda: numpy.uint64(2**64 - 1),
        "bool": lambda: numpy.bool_(True),
        "text": lambda: numpy.str_("猫"),
        "bytes": lambda: numpy.bytes_(b"ab"),
        "array": lambda: numpy.arange(6, dtype="int32").reshape(2, 3),
        "array of float16": lambda: numpy.array([0.5, float("nan"), float("inf")], dtype="float16"),
        "not contiguous": lambda: numpy.arange(10)[::-2],
        "big endian": lambda: numpy.arange(3, dtype=">i4"),
        "no dimension": lambda: numpy.array(5),
        "empty": lambda: numpy.zeros((0, 3)),
        "date": lambda: numpy.datetime64("2026-01-02"),
        "complex": lambda: numpy.complex64(1j),
        "array of complex": lambda: numpy.zeros(2, dtype=complex),
        "record": lambda: numpy.zeros(1, dtype=[("a", "i4")]),
        "objects": lambda: numpy.array([object()], dtype=object),
        "objects that are numbers": lambda: numpy.array([1, "a", None], dtype=object),
        "nan": lambda: numpy.float64("nan"),
    }[name]()


def torch_value(name):
    import torch

    return {
        "tensor": lambda: torch.arange(4).reshape(2, 2),
        "with gradient": lambda: torch.ones(2, requires_grad=True),
        "bfloat16": lambda: torch.ones(2, dtype=torch.bfloat16),
        "scalar": lambda: torch.tensor(0.5),
        "nan": lambda: torch.tensor([float("nan")]),
        "sparse": lambda: torch.eye(2).to_sparse(),
        "meta": lambda: torch.ones(2, device="meta"),
    }[name]()


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def cyclic_list():
    value = [1]
    value.append(value)
    return value


def cyclic_dict():
    value = {"a": {}}
    value["a"]["b"] = value
    return value


VALUES = {
    "nan": lambda: {"value": float("nan"), "more": [float("inf"), float("-inf"), 1.5]},
    "minus zero": lambda: [-0.0, 0.0],
    "largest": lambda: [2**63 - 1, -(2**63), 2**64 - 1],
    "beyond 64 bit": lambda: 2**64,
    "far beyond": lambda: 10**5000,
    "smallest float": lambda: [5e-324, 1.7976931348623157e308, 0.1],
    "bytes inside": lambda: {"a": b"\x00\xff", "b": bytearray(b"x"), "c": memoryview(b"y")},
    "date": lambda: {"a": datetime.date(2026, 1, 2), "b": datetime.datetime(2026, 1, 2, 3, 4, 5)},
    "enum": lambda: Colour.RED,
    "uuid": lambda: uuid.UUID(int=1),
    "tuple": lambda: (1, (2, 3)),
    "deque": lambda: collections.deque([1]),
    "counter": lambda: collections.Counter("aab"),
    "subclass": lambda: Odd(a=1),
    "keys": lambda: {1: "a", 2.5: "b", None: "c", False: "d"},
    "surrogate": lambda: "a\ud800b",
    "surrogate key": lambda: {"\ud800": 1},
    "emoji": lambda: '😀\u2028\u0000"\\',
    "set": lambda: {1, 2},
    "object": lambda: {"deep": [1, object()]},
    "hostile": lambda: [Hostile()],
    "class": lambda: Colour,
    "function": lambda: len,
    "generator": lambda: {"a": (n for n in range(3))},
    "decimal": lambda: decimal.Decimal("1.5"),
    "fraction": lambda: fractions.Fraction(1, 2),
    "array": lambda: array.array("d", [1.5]),
    "tuple key": lambda: {(1, 2): 3},
    "cyclic list": cyclic_list,
    "cyclic dict": cyclic_dict,
    "depth 64": lambda: nested(64),
    "depth 65": lambda: nested(65),
    "depth 100,000": lambda: nested(100_000),
    "error with a surrogate": lambda: refuse("a\ud800b\x1b[31m<script>"),
}


def refuse(message):
    raise ClientError(message)


def make(request):
    if not isinstance(request, dict):
        return request
    if "numpy" in request:
        return {"value": numpy_value(request["numpy"])}
    if "torch" in request:
        return {"value": torch_value(request["torch"])}
    if "numbers" in request:
        return [1] * request["numbers"]
    if "bytes" in request:
        return bytes(request["bytes"])
    if "text" in request:
        return {"text": ["x" * 1000] * (request["text"] // 1000)}
    return VALUES[request["kind"]]()


class Model:
    def predict_batch(self, items):
        return [make(item) for item in items]
