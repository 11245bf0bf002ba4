"""Bodies of the type `application/x-recordio-protobuf`: a record of Amazon's protobuf for each row."""

from __future__ import annotations

import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from panglot_worker.dialects.sagemaker.libraries import library
from panglot_worker.tensors import protobuf

RECORDIO = "application/x-recordio-protobuf"
MAGIC = 0xCED7230A
HEAD = struct.Struct("<II")
LENGTH = (1 << 29) - 1
"""The bits of a record's second word that are its length; the bits above tell whether it is a part of a record."""
FEATURES = 1
"""The field of a Record that is the map of features; others are labels and notes, which predictions do not need."""
DTYPES = {2: "<f4", 3: "<f8", 7: "<i4"}
"""Fields of a Value that are tensors, and the type of their values."""
VALUES, KEYS, SHAPE = 1, 2, 3


class Row(NamedTuple):
    """The tensor of a record: all values, or those at the keys of a row of so many."""

    values: Any
    keys: Optional[List[int]]
    shape: List[int]


def matrix(body: Any) -> Any:
    """The rows of a body: an array, or a sparse matrix where records have keys. Raises ValueError."""
    numpy = library("numpy")
    try:
        rows = [_row(record, numpy) for record in records(memoryview(bytes(body)))]
    except IndexError:
        raise ValueError("a record ends in the middle") from None
    if not rows:
        raise ValueError("there is no record in the body")
    if all(row.keys is None for row in rows):
        return numpy.vstack([row.values for row in rows])
    sparse = library("scipy.sparse")
    width = max(max([*row.shape[-1:], max(row.keys or [0]) + 1]) for row in rows)
    lines = [
        sparse.csr_matrix((row.values, ([0] * len(row.values), row.keys or range(len(row.values)))), shape=(1, width))
        for row in rows
    ]
    return sparse.vstack(lines, format="csr")


def records(view: memoryview) -> Iterator[memoryview]:
    """The records of a file in recordio. Raises ValueError."""
    at = 0
    while at < len(view):
        if len(view) - at < HEAD.size:
            raise ValueError("a record ends in the middle")
        magic, word = HEAD.unpack_from(view, at)
        if magic != MAGIC:
            raise ValueError("the body is no recordio: a record begins otherwise")
        if word >> 29:
            raise ValueError("a record in several parts is not read")
        at += HEAD.size
        size = word & LENGTH
        if at + size > len(view):
            raise ValueError("a record ends in the middle")
        yield view[at : at + size]
        # Records begin at multiples of four bytes.
        at += size + -size % 4


def _row(record: memoryview, numpy: Any) -> Row:
    """The only feature of a record, or the one that is called `values`."""
    features: Dict[str, memoryview] = {}
    for number, _, entry in protobuf.fields(record):
        if number == FEATURES:
            pair = {key: content for key, _, content in protobuf.fields(entry)}
            features[bytes(pair.get(1, b"")).decode("utf-8", "replace")] = pair.get(2, memoryview(b""))
    chosen = features.get("values", next(iter(features.values()), None)) if features else None
    for number, _, tensor in protobuf.fields(chosen) if chosen is not None else ():
        if number in DTYPES:
            return _tensor(tensor, DTYPES[number], numpy)
    raise ValueError("a record has no tensor of numbers among its features")


def _tensor(tensor: memoryview, dtype: str, numpy: Any) -> Row:
    values = numpy.array([], dtype)
    keys: List[int] = []
    shape: List[int] = []
    for number, kind, content in protobuf.fields(tensor):
        if number == VALUES:
            # Numbers of type int32 are varints, others are packed as they lie in memory.
            packed = numpy.array(_numbers(kind, content), dtype) if dtype == "<i4" else numpy.frombuffer(content, dtype)
            values = numpy.concatenate([values, packed])
        elif number == KEYS:
            keys += _numbers(kind, content)
        elif number == SHAPE:
            shape += _numbers(kind, content)
    return Row(values, keys or None, shape)


def _numbers(kind: int, content: Any) -> List[int]:
    if kind == protobuf.VARINT:
        return [_signed(content)]
    numbers, at = [], 0
    while at < len(content):
        number, at = protobuf.varint(content, at)
        numbers.append(_signed(number))
    return numbers


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
