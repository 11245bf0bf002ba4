"""Inputs of model files: arrays of the model's type and shape, or one refusal; never more room than was sent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy

from panglot_worker.bodies import codec
from panglot_worker.dialects.bare.pictures import picture_input
from panglot_worker.dialects.bare.requests import InputReader
from panglot_worker.errors import ClientError
from panglot_worker.runtimes.base import NUMPY, ModelTensor

SPECS = (
    ModelTensor("x", "FP32", [-1, 4]), ModelTensor("x", "INT8", [2]), ModelTensor("x", "BYTES", [-1]),
    ModelTensor("x", "BOOL", None), ModelTensor("x", "FP16", [-1, 3, 8, 8]), ModelTensor("x", "UINT64", [-1, -1]),
)  # fmt: skip
TYPES = ("", "application/json", "application/octet-stream", "application/x-www-form-urlencoded", "image/png")
WORDS = [
    *rb"""{"x": [[ ]] , 1e39 -1 1.5 null true NaN "a" {'descr': '<f4' '|O' '<U9' '|b1'""".split(),
    b"'fortran_order': False, ",
    b"'shape': (99999999999, 4), }", b"\x93NUMPY\x01\x00v\x00", b"\x93NUMPY\x02\x00", b"\x89PNG\r\n\x1a\n", b"BM",
    b"\xff\xd8\xff", b"\n",
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(data: bytes) -> None:
    """The first byte chooses the model and the type of the body; the rest is the body."""
    chosen = data[0] if data else 0
    spec, content_type = SPECS[chosen % len(SPECS)], TYPES[chosen // len(SPECS) % len(TYPES)]
    picture = picture_input(spec, {})
    reader = InputReader([spec], {"x": picture} if picture is not None else {}, False, codec.Limits())
    try:
        array = reader.decode(content_type, data[1:])["x"]
    except ClientError as error:
        check_refusal(error)
        return
    assert array.dtype == numpy.dtype(NUMPY[spec.datatype])
    assert spec.shape is None or len(array.shape) == len(spec.shape)


def check_refusal(error: ClientError) -> None:
    assert error.status in (400, 413, 415)
    assert len(str(error)) < 500
