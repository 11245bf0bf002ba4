"""Files that are messages of protobuf, field by field, without their definition and without a copy."""

from __future__ import annotations

from typing import Iterator, Tuple, Union

from panglot_worker.tensors import protobuf

Value = Union[int, memoryview]


def fields(message: memoryview) -> Iterator[Tuple[int, Value]]:
    """Number and value of each field of a message. Raises ValueError or IndexError for bytes that are no whole one."""
    for number, _, value in protobuf.fields(message):
        yield number, value


def inner(value: Value) -> memoryview:
    """The message that a field holds. Raises ValueError where it holds a number."""
    if isinstance(value, int):
        raise ValueError("a number stands where a message should")
    return value


def text(value: Value) -> str:
    return str(inner(value), "utf-8")
