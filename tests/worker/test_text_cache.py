"""Requests and answers with tensors that differ from earlier ones in their numbers alone: short cuts change nothing."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

from panglot_worker.bodies import jsontext
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.tensors import rest
from panglot_worker.tensors.answer_cache import AnswerCache
from panglot_worker.tensors.infer import Infer, Wishes
from panglot_worker.tensors.tensors import Tensor
from panglot_worker.tensors.text_cache import MOST_KEPT, TextCache

HEAD = wire.Head(b"id-1", b"/predict", form=b"rest", model=b"m", version=b"1")
READER = rest.RestReader(Limits(), ())


def text(data: Any, datatype: str = "FP32", shape: tuple[int, ...] = (1, 2), name: str = "x", **more: Any) -> bytes:
    about = {"name": name, "datatype": datatype, "shape": list(shape), "data": data}
    return json.dumps({"inputs": [about], **more}).encode()


def kept(body: bytes, head: wire.Head = HEAD, limits: Limits | None = None) -> TextCache:
    """What has read a request once."""
    same = TextCache(limits or Limits())
    same.keep(head.pack(), head, body, READER.read(head, body))
    return same


def again(same: TextCache, body: bytes, head: wire.Head = HEAD) -> Infer | None:
    """The request read by what came of an earlier one: if it is taken at all, as it is read whole."""
    infer = same.read(head._replace(request_id=b"another").pack(), memoryview(body))
    if infer is not None:
        whole = READER.read(head, body)
        assert infer.wishes == whole.wishes
        assert infer.parameters == whole.parameters == {}
        assert [tensor[:3] for tensor in infer.inputs.values()] == [tensor[:3] for tensor in whole.inputs.values()]
        assert [bytes(tensor.data) for tensor in infer.inputs.values()] == [
            bytes(tensor.data) for tensor in whole.inputs.values()
        ]
    return infer


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (text([1, 2]), text([0.5, -3e38])),
        (text([[1, 2]]), text([[-7.25, 2]])),
        (text([1, 2], "FP64"), text([1e300, 18446744073709551615], "FP64")),
        (text([1, 2], "INT64"), text([-(2**63), 2**63 - 1], "INT64")),
        (text([1, 2], "UINT64"), text([2**64 - 1, 0], "UINT64")),
        (text([1, 2], "INT8"), text([-128, 127], "INT8")),
        (text([], shape=(0, 2)), text([], shape=(0, 2))),
        (text([1, 2], name="data"), text([3, 4], name="data")),
        (text([1, 2], name='a "data": [1] b'), text([3, 4], name='a "data": [1] b')),
        (text([1, 2], outputs=[{"name": "y"}]), text([3, 4], outputs=[{"name": "y"}])),
        (text([1, 2]).replace(b" ", b""), text([3, 4]).replace(b" ", b"")),
    ],
)
def test_other_numbers_are_read_as_the_whole_request_is(first: bytes, second: bytes) -> None:
    same = kept(first)
    assert again(same, first) is not None
    assert again(same, second) is not None


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("INT32", [1.5, 2]), ("INT32", [2**31, 0]), ("INT8", [True, 1]), ("FP32", [1e39, 0]), ("FP32", [True, 0.5]),
        ("FP32", [None, 1]), ("FP32", ["1", 2]), ("FP32", [1]), ("FP32", [1, 2, 3]), ("FP32", [[1], [2]]),
        ("FP32", [[1, 2], 3]), ("FP32", []), ("FP64", [10**400, 1]), ("UINT8", [-1, 0]), ("FP32", [{}, 1]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_left_to_whoever_reads_the_whole(datatype: str, data: Any) -> None:
    same = kept(text([1, 2], datatype))
    assert again(same, text(data, datatype)) is None
    if data != [[1], [2]]:
        with pytest.raises(ClientError):
            READER.read(HEAD, text(data, datatype))


@pytest.mark.parametrize("numbers", [b"1,2,", b"1 2", b"NaN,1", b"Infinity,1", b"1e999,1", b"01,1", b"1,2]", b"\xff,1"])
def test_numbers_that_are_no_json_are_not_taken(numbers: bytes) -> None:
    same = kept(text([1, 2]))
    assert again(same, text([1, 2]).replace(b"1, 2", numbers)) is None


@pytest.mark.parametrize(
    ("body", "head"),
    [
        (text([1, 2], id="7"), HEAD),
        (text([1, 2], parameters={"a": 1}), HEAD),
        (text(["a", "b"], "BYTES"), HEAD),
        (text([True, False], "BOOL"), HEAD),
        (text([[1], [2]], shape=(2, 1)), HEAD),
        (text([1, 2]).replace(b'"data":', b'"data":[5,6],"data":'), HEAD),
        (text([1, 2]), HEAD._replace(traceparent=b"00-1-2-01")),
        (json.dumps({"inputs": [*json.loads(text([1, 2]))["inputs"], *json.loads(text([1], shape=(1,), name="y"))
                                ["inputs"]]}).encode(), HEAD),
    ],
)  # fmt: skip
def test_requests_with_more_than_numbers_are_read_whole(body: bytes, head: wire.Head) -> None:
    same = kept(body, head)
    assert again(same, body, head) is None


def test_another_head_is_another_request() -> None:
    same = kept(text([1, 2]))
    assert again(same, text([1, 2]), HEAD._replace(accept_encoding=b"gzip")) is None
    assert again(same, text([1, 2]), HEAD._replace(model=b"other")) is None
    assert again(same, text([1, 2])) is not None


def test_texts_beyond_the_limit_are_refused_as_before() -> None:
    same = kept(text([1, 2]), limits=Limits(json_bytes=len(text([1, 2]))))
    assert again(same, text([1, 2])) is not None
    assert same.read(HEAD.pack(), text([1.25, 2])) is None


def test_only_so_many_are_kept() -> None:
    same = TextCache(Limits())
    for at in range(3 * MOST_KEPT):
        body = text([1, 2], name=f"x{at}")
        same.keep(HEAD.pack(), HEAD, body, READER.read(HEAD, body))
        assert again(same, body) is not None
    assert len(same._known) <= MOST_KEPT


@pytest.mark.skipif(jsontext.unguarded(1) == b"", reason="without orjson every answer is written whole")
def test_an_answer_is_the_text_that_is_written_whole() -> None:
    answers, wishes = AnswerCache("null", Limits()), Wishes(b"rest", 'a "model"', "1")
    for datatype, code in (("FP32", "f"), ("FP64", "d"), ("INT64", "q"), ("UINT8", "B")):
        for numbers in ([1, 2], [0, 3], []):
            shape = (len(numbers),)
            tensor = Tensor("null é", datatype, shape, struct.pack(f"<{len(numbers)}{code}", *numbers))
            for _ in range(2):
                assert answers.text(wishes, [tensor]) == rest.answer(wishes, [tensor], "null", Limits()).content


def test_answers_that_hold_more_than_numbers_are_written_whole() -> None:
    wishes = Wishes(b"rest", "m", "1")
    numbers = Tensor("x", "FP32", (1,), struct.pack("<f", 1))
    answers = AnswerCache("null", Limits())
    assert answers.text(wishes, [Tensor("x", "FP32", (1,), struct.pack("<f", math.nan))]) is None
    assert answers.text(wishes, [Tensor("x", "BYTES", (1,), [b"a"])]) is None
    assert answers.text(wishes, [numbers, numbers]) is None
    assert answers.text(wishes, []) is None
    assert AnswerCache("null", Limits(output_bytes=104)).text(wishes, [numbers]) is None
    for more in ({"id": "7"}, {"binary": True}, {"coding": "gzip"}):
        assert answers.text(wishes._replace(**more), [numbers]) is None
