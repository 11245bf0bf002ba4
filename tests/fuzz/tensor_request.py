"""Requests with tensors over REST: whole tensors that go back as they came, or one refusal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.tensors import rest, tensors
from panglot_worker.tensors.datatypes import DATATYPES
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec
from panglot_worker.tensors.text_cache import TextCache

READER = rest.RestReader(Limits(), (TensorSpec("x", "FP32", (-1, 2)),))
WORDS = [
    *(f'"{name}"'.encode() for name in DATATYPES),
    *rb'"inputs" "outputs" "name" "x" "y" "datatype" "shape" "data" "id" "parameters" "binary_data_size" true'.split(),
    *rb'"binary_data_output" "binary_data" { } [ ] : , 0 1 -1 2 1.5 1e39 18446744073709551615 null "\xc3\xa9"'.split(),
    b'{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2]}]}',
    b'{"inputs":[{"name":"x","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}}]}',
    b"gzip\n", b"deflate\n", b"0\n", b"79\n", b"\n", b"\2\0\0\0ab", b"\1\0\0\0",
]  # fmt: skip


@contextlib.contextmanager
def checking() -> Iterator[Callable[[bytes], None]]:
    yield check


def check(data: bytes) -> None:
    """The first line is the length of the JSON, or a coding; the rest the body."""
    first, _, body = data.partition(b"\n")
    head = wire.Head(form=b"rest", model=b"m", version=b"1")
    if first in (b"gzip", b"deflate"):
        head = head._replace(encoding=first, accept_encoding=first)
    else:
        head = head._replace(json_length=first)
    try:
        infer = READER.read(head, body)
    except ClientError as error:
        check_refusal(error)
    else:
        check_tensors(infer)
        check_answer(infer)
        check_short_cut(head, body, infer)


def check_short_cut(head: wire.Head, body: bytes, infer: Infer) -> None:
    """Where the next request with other numbers is read by what came of this one, this one too, and as it was."""
    texts = TextCache(Limits())
    texts.keep(head.pack(), head, body, infer)
    again = texts.read(head.pack(), body)
    if again is not None:
        assert again.wishes == infer.wishes
        assert all(same(again.inputs[name], tensor) for name, tensor in infer.inputs.items())


def check_refusal(error: ClientError) -> None:
    assert error.status in (400, 413, 415)
    assert len(error.message) < 1000


def check_tensors(infer: Infer) -> None:
    for name, tensor in infer.inputs.items():
        assert name == tensor.name
        width = DATATYPES[tensor.datatype].width
        assert len(tensor.data) == tensors.count_of(tensor.shape) * (width or 1)
        assert same(tensors.from_raw(name, tensor.datatype, tensor.shape, memoryview(tensor.raw())), tensor)


def same(one: Tensor, other: Tensor) -> bool:
    return one[:3] == other[:3] and bytes(one.raw()) == bytes(other.raw())


def check_answer(infer: Infer) -> None:
    """All of the inputs as outputs, in bytes, are the same tensors again. Without any there are no bytes."""
    if not infer.inputs:
        return
    wishes = infer.wishes._replace(wanted=(), binary=True, coding="")
    _, content, headers = rest.answer(wishes, list(infer.inputs.values()), "null", Limits())
    size = int(headers[0].partition(": ")[2])
    about = json.loads(bytes(content)[:size])
    again = json.dumps({"inputs": about["outputs"]}).encode()
    head = wire.Head(form=b"rest", json_length=b"%d" % len(again))
    given = READER.read(head, again + bytes(content)[size:])
    assert list(given.inputs) == list(infer.inputs)
    assert all(same(given.inputs[name], tensor) for name, tensor in infer.inputs.items())
