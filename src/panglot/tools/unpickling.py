"""Pickles of dictionaries of arrays, read without running anything in them.

`reprod_log` saves its results so. A pickle is a program that may call whatever it names; here its instructions are
followed one by one and only what makes up plain values and numpy arrays is understood. Nothing is ever imported or
called. What it builds is Python's own containers, numbers and texts, and `Array`.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import Any

from panglot.tools.arrays import Array

MARK = object()
ARRAYS = ("numpy.core.multiarray", "numpy._core.multiarray")
KNOWN = {
    *((module, name) for module in ARRAYS for name in ("_reconstruct", "scalar")),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    *((module, "_frombuffer") for module in ("numpy.core.numeric", "numpy._core.numeric")),
    ("_codecs", "encode"),
    ("__builtin__", "bytes"),
    ("collections", "OrderedDict"),
}
MOST_STEPS = 5_000_000


class Refused(ValueError):
    """The pickle holds something other than plain values and arrays."""


@dataclass
class Named:
    """A name the pickle would import."""

    module: str
    name: str


@dataclass
class Dtype:
    code: str
    order: str = "|"

    @property
    def text(self) -> str:
        return ("|" if self.code in ("b1", "i1", "u1", "O8") else self.order.replace("=", "<")) + self.code


@dataclass
class Unfinished:
    """An array between its making and its state; `state` is an Array, or the list of an array of objects."""

    state: Any = field(default=None)


class Reader:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def read(self, data: bytes) -> Any:
        """The value. Raises Refused, also for what is no pickle."""
        try:
            for step, (opcode, argument, _) in enumerate(pickletools.genops(data)):
                if step > MOST_STEPS:
                    raise Refused("it has too many parts")
                if opcode.name == "STOP":
                    return finished(self.stack.pop())
                self._step(opcode.name, argument)
        except (IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Refused(f"it is damaged ({type(error).__name__})") from None
        except Refused:
            raise
        except ValueError as error:
            raise Refused(f"it is no pickle: {error}") from None
        raise Refused("it ends early")

    def _step(self, name: str, argument: Any) -> None:
        if name in SKIPPED:
            return
        if name in LITERALS:
            self.stack.append(LITERALS[name](argument))
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name]())
        elif hasattr(self, name.lower()):
            getattr(self, name.lower())(argument)
        else:
            raise Refused(f"it holds the instruction {name}, which no dictionary of arrays needs")

    # Memory

    def memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def put(self, argument: int) -> None:
        self.memo[argument] = self.stack[-1]

    binput = long_binput = put

    def get(self, argument: int) -> None:
        self.stack.append(self.memo[argument])

    binget = long_binget = get

    def pop(self, _: Any) -> None:
        self.stack.pop()

    def dup(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    # Containers

    def mark(self, _: Any) -> None:
        self.stack.append(MARK)

    def _above(self) -> list[Any]:
        at = max(index for index, entry in enumerate(self.stack) if entry is MARK)
        above = self.stack[at + 1 :]
        del self.stack[at:]
        return above

    def tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._above()))

    def list(self, _: Any) -> None:
        self.stack.append(self._above())

    def dict(self, _: Any) -> None:
        self.stack.append(_pairs(self._above()))

    def tuple1(self, _: Any) -> None:
        self._several(1)

    def tuple2(self, _: Any) -> None:
        self._several(2)

    def tuple3(self, _: Any) -> None:
        self._several(3)

    def _several(self, count: int) -> None:
        entries = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.stack.append(entries)

    def append(self, _: Any) -> None:
        entry = self.stack.pop()
        self.stack[-1].append(entry)

    def appends(self, _: Any) -> None:
        entries = self._above()
        self.stack[-1].extend(entries)

    def setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][key] = value

    def setitems(self, _: Any) -> None:
        entries = self._above()
        self.stack[-1].update(_pairs(entries))

    # Names and what is made of them

    def _global(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._named(module, name)

    def stack_global(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self._named(str(module), str(name))

    def _named(self, module: str, name: str) -> None:
        if (module, name) not in KNOWN:
            raise Refused(f"it would import {module}.{name}")
        self.stack.append(Named(module, name))

    def reduce(self, _: Any) -> None:
        arguments, what = self.stack.pop(), self.stack.pop()
        self.stack.append(_made(what.name, arguments))

    def build(self, _: Any) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, Dtype):
            target.order = _text(state[1])
        elif isinstance(target, Unfinished):
            target.state = _array(*state[1:5])
        else:
            raise Refused("it sets the state of something other than an array")


# `global` is a word of Python's own.
setattr(Reader, "global", Reader._global)


def _made(name: str, arguments: Any) -> Any:
    if name == "_reconstruct":
        return Unfinished()
    if name == "_frombuffer":
        data, dtype, shape, order = arguments
        return _array(shape, dtype, order == "F", data)
    if name == "dtype":
        return Dtype(_text(arguments[0]))
    if name == "scalar":
        dtype, data = arguments
        return Array(dtype.text, (), _bytes(data))
    if name == "encode":
        return str(arguments[0]).encode("latin-1")
    return b"" if name == "bytes" else {}


def _array(shape: Any, dtype: Dtype, fortran: Any, data: Any) -> Any:
    shape = tuple(int(length) for length in shape)
    if isinstance(data, list):
        return data[0] if shape == () else data
    return Array(dtype.text, shape, _bytes(data), bool(fortran))


def finished(value: Any) -> Any:
    """The value with every array in its final form."""
    if isinstance(value, Unfinished):
        return finished(value.state)
    if isinstance(value, dict):
        return {key: finished(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finished(entry) for entry in value]
    if isinstance(value, Named | Dtype):
        raise Refused("it holds a type where a value should be")
    return value


def _pairs(entries: list[Any]) -> dict[Any, Any]:
    return dict(zip(entries[::2], entries[1::2], strict=True))


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    # Python 2 wrote bytes as text.
    return value.encode("latin-1") if isinstance(value, str) else bytes(value)


SKIPPED = {"PROTO", "FRAME"}
LITERALS: dict[str, Any] = {
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG"), lambda value: value),
    **dict.fromkeys(("BINFLOAT", "FLOAT"), float),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"), str),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), bytes),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING", "STRING"), lambda value: value),
}
CONSTANTS: dict[str, Any] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
