"""Tensors of the Open Inference Protocol in the worker: what is taken, what is refused, and the bytes of answers."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from typing import Any

import pytest

from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.tensors import messages, outputs, protobuf, rest, tensors
from panglot_worker.tensors.infer import Infer
from panglot_worker.tensors.tensors import Tensor, TensorSpec

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

REST = wire.Head(form=b"rest", model=b"m", version=b"1")
GRPC = REST._replace(form=b"grpc")
FLOATS = struct.pack("<4f", 1, 2, 3, 4)


def read(value: Any, behind: bytes = b"", *inputs: TensorSpec, **head: bytes) -> Infer:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    if behind:
        head = {"json_length": b"%d" % len(body), **head}
    return rest.RestReader(Limits(), inputs).read(REST._replace(**head), body + behind)


def one(datatype: str, data: Any, *shape: int, **more: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": list(shape), "data": data}], **more}


@pytest.mark.parametrize(
    ("datatype", "data", "shape"),
    [
        ("BOOL", [True, False], (2,)), ("UINT8", [0, 255], (2,)), ("INT8", [-128, 127], (2,)),
        ("UINT64", [2**64 - 1], (1,)), ("INT64", [-(2**63)], (1,)), ("FP32", [[1, 2.5], [3, 4]], (2, 2)),
        ("FP32", [3.4028234e38], (1,)), ("FP64", [1e300], (1, 1)), ("BYTES", ["é", ""], (2,)), ("INT32", [], (0,)),
    ],
)  # fmt: skip
def test_json_is_taken_and_given_back(datatype: str, data: Any, shape: tuple[int, ...]) -> None:
    infer = read(one(datatype, data, *shape))
    flat = [value for row in data for value in row] if isinstance(data[:1], list) and shape == (2, 2) else data
    body = rest.answer(infer.wishes, list(infer.inputs.values()), "null", Limits())
    given = json.loads(body.content)["outputs"][0]
    assert given["datatype"] == datatype
    assert given["shape"] == list(shape)
    assert given["data"] == pytest.approx(flat) if datatype.startswith("FP") else given["data"] == flat
    if numpy is not None:
        assert infer.inputs["x"].array().shape == shape


@pytest.mark.parametrize(
    ("datatype", "data", "shape", "said"),
    [
        ("INT32", [1.5], (1,), "whole numbers, not 1.5"), ("FP32", [1e39], (1,), "1e+39 is beyond FP32"),
        ("FP32", [-1e39, 0], (2,), "beyond FP32"), ("UINT8", [-1], (1,), "-1 is beyond UINT8"),
        ("INT8", [128], (1,), "128 is beyond INT8"), ("INT64", [2**63], (1,), "beyond INT64"),
        ("INT32", [True], (1,), "not True"), ("BOOL", [1], (1,), "true or false, not 1"),
        ("FP32", ["1"], (1,), "not '1'"), ("FP32", [None], (1,), "not None"), ("BYTES", [1], (1,), "strings, not 1"),
        ("FP16", [1.0], (1,), "JSON has no form for FP16"), ("FP8", [1], (1,), "no datatype 'FP8'"),
        ("INT8", [1, 2], (1,), "1 elements, and 2 were sent"), ("INT8", [[1], [2, 3]], (3,), "irregular"),
        ("INT8", [1], (-1,), "-1 in its shape is no size"), ("INT8", 1, (1,), "must be a list"),
        ("INT8", [], (1 << 31, 2), "more than"),
    ],
)  # fmt: skip
def test_what_is_not_of_its_kind_or_range_is_refused(datatype: str, data: Any, shape: Any, said: str) -> None:
    with pytest.raises(ClientError) as caught:
        read(one(datatype, data, *shape))
    assert said in caught.value.message
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "request_",
    [
        b"{", b"[]", b"{}", {"inputs": {}}, {"inputs": [1]}, {"inputs": [{"name": "x"}]},
        {"inputs": [{"name": "x", "datatype": "INT8", "shape": [1]}]},
        {"inputs": [{"name": "x", "datatype": "INT8", "shape": 1, "data": [1]}]},
        {**one("INT8", [1], 1), "id": 5}, {**one("INT8", [1], 1), "parameters": []},
        {**one("INT8", [1], 1), "outputs": {}}, {**one("INT8", [1], 1), "outputs": [{}]},
        {**one("INT8", [1], 1), "outputs": [{"name": "y"}, {"name": "y"}]},
        {"inputs": one("INT8", [1], 1)["inputs"] * 2},
        {"inputs": [{"name": "x", "datatype": "INT8", "shape": [1], "parameters": {"shared_memory_region": "r"}}]},
        {"inputs": [{"name": "x", "datatype": "INT8", "shape": [1], "parameters": {"binary_data_size": 1}}]},
    ],
)  # fmt: skip
def test_a_malformed_request_is_refused(request_: Any) -> None:
    with pytest.raises(ClientError):
        read(request_)


def binary(*sizes: int, **more: Any) -> dict[str, Any]:
    inputs = [
        {"name": f"x{at}", "datatype": "FP32", "shape": [2, 2], "parameters": {"binary_data_size": size}}
        for at, size in enumerate(sizes)
    ]
    return {"inputs": inputs, **more}


def test_bytes_behind_the_json_are_tensors_and_may_be_mixed_with_json() -> None:
    value = binary(16, 16, parameters={"binary_data_output": True}, outputs=[{"name": "x0"}, {"name": "j"}])
    value["inputs"].insert(1, one("INT8", [1, 2], 2)["inputs"][0])
    value["outputs"][1]["parameters"] = {"binary_data": False}
    infer = read(value, FLOATS + FLOATS)
    assert [tensor.nested() for tensor in infer.inputs.values()] == [[[1, 2], [3, 4]], [1, 2], [[1, 2], [3, 4]]]
    given = [infer.inputs["x0"], Tensor("j", "INT8", (1,), b"\7")]
    content_type, body, headers = rest.answer(infer.wishes, given, "null", Limits())
    content = bytes(body)
    size = int(headers[0].partition(": ")[2])
    about = json.loads(content[:size])["outputs"]
    assert content_type == "application/octet-stream"
    assert headers[0].startswith("inference-header-content-length")
    assert about[0] == {"name": "x0", "datatype": "FP32", "shape": [2, 2], "parameters": {"binary_data_size": 16}}
    assert about[1]["data"] == [7]
    assert content[size:] == FLOATS


@pytest.mark.parametrize(
    ("value", "behind", "head"),
    [
        (binary(16), FLOATS[:8], {}), (binary(16), FLOATS + b"x", {}), (binary(8), FLOATS[:8], {}),
        (binary(-1), FLOATS, {}), (binary(16), FLOATS, {"json_length": b"99999"}),
        (binary(16), FLOATS, {"json_length": b"-1"}), (binary(16), FLOATS, {"json_length": b"x"}),
    ],
)  # fmt: skip
def test_lengths_that_do_not_fit_are_refused(value: Any, behind: bytes, head: dict[str, bytes]) -> None:
    with pytest.raises(ClientError):
        read(value, behind, **head)


def test_a_request_of_nothing_but_bytes() -> None:
    spec = TensorSpec("x", "FP32", (-1, 2))
    infer = read(FLOATS, b"", spec, json_length=b"0")
    assert infer.inputs["x"].shape == (2, 2)
    assert infer.wishes.binary
    picture = read(b"\x89PNG", b"", TensorSpec("x", "BYTES", (1,)), json_length=b"0")
    assert picture.inputs["x"].data == [b"\x89PNG"]
    for specs in ((), (spec, spec), (TensorSpec("x", "FP32", (2, -1, -1)),), (TensorSpec("x", "FP32", (3,)),)):
        with pytest.raises(ClientError):
            read(FLOATS, b"", *specs, json_length=b"0")


def test_elements_of_bytes_have_their_length_before_them() -> None:
    raw = struct.pack("<I", 2) + b"\xff\xfe" + struct.pack("<I", 0)
    tensor = tensors.from_raw("x", "BYTES", (2,), raw)
    assert tensor.data == [b"\xff\xfe", b""]
    assert tensor.raw() == raw
    for wrong in (raw[:-1], raw + b"\1", struct.pack("<I", 99), raw[:6]):
        with pytest.raises(ClientError):
            tensors.from_raw("x", "BYTES", (2,), wrong)
    with pytest.raises(ClientError):
        tensors.from_raw("x", "BOOL", (2,), b"\0\2")


def test_halves_are_read_with_and_without_numpy() -> None:
    for datatype, bits in (("FP16", (0x3C00, 0xC000)), ("BF16", (0x3F80, 0xC000))):
        tensor = tensors.from_raw("x", datatype, (2,), struct.pack("<2H", *bits))
        assert tensor.flat() == [1.0, -2.0]
        assert numpy is None or tensor.array().tolist() == [1.0, -2.0]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_bodies_may_be_compressed_and_so_are_answers_for_who_names_one_coding(coding: str) -> None:
    plain = json.dumps(one("INT8", [1], 1)).encode()
    packed = gzip.compress(plain) if coding == "gzip" else zlib.compress(plain)
    infer = read(packed, encoding=coding.encode(), accept_encoding=coding.encode())
    body = rest.answer(infer.wishes, list(infer.inputs.values()), "null", Limits())
    assert f"content-encoding: {coding}" in body.headers
    assert json.loads(zlib.decompress(body.content, 47))["outputs"][0]["data"] == [1]
    for wrong in (packed[:-1], packed + b"x", plain):
        with pytest.raises(ClientError):
            read(wrong, encoding=coding.encode())


def test_a_compressed_body_may_not_unfold_without_end() -> None:
    bomb = gzip.compress(b" " * (1 << 20))
    reader = rest.RestReader(Limits(output_bytes=1 << 16), ())
    with pytest.raises(ClientError) as caught:
        reader.read(REST._replace(encoding=b"gzip"), bomb)
    assert caught.value.status == 413
    with pytest.raises(ClientError) as caught:
        read(b"", encoding=b"br")
    assert caught.value.status == 415


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip", "gzip"), ("deflate", "deflate"), ("gzip, identity;q=0.5", "gzip"), ("gzip, deflate", ""), ("", ""),
     ("br", ""), ("*", ""), ("gzip;q=0", "")],
)  # fmt: skip
def test_only_one_named_coding_compresses(accepted: str, coding: str) -> None:
    assert rest.only_coding(accepted) == coding


# gRPC


def message(*inputs: bytes, raw: tuple[bytes, ...] = (), more: bytes = b"") -> bytes:
    found = protobuf.text(1, "m") + more + b"".join(protobuf.message(5, one) for one in inputs)
    return found + b"".join(protobuf.message(7, one) for one in raw)


def described(datatype: str, *shape: int, contents: bytes = b"") -> bytes:
    about = protobuf.text(1, "x") + protobuf.text(2, datatype) + protobuf.packed(3, shape)
    return about + (protobuf.message(5, contents) if contents else b"")


def test_raw_contents_are_not_copied_and_answers_are_raw() -> None:
    infer = messages.read(GRPC, message(described("FP32", 2, 2), raw=(FLOATS,), more=protobuf.text(3, "7")))
    assert infer.inputs["x"].nested() == [[1, 2], [3, 4]]
    assert infer.wishes.id == "7"
    given = bytes(messages.answer(infer.wishes, [infer.inputs["x"]]))
    fields = [(number, bytes(value)) for number, _, value in protobuf.fields(memoryview(given))]
    assert fields == [(1, b"m"), (2, b"1"), (3, b"7"), (5, described("FP32", 2, 2)), (6, FLOATS)]


@pytest.mark.parametrize(
    ("datatype", "contents", "expected"),
    [
        ("BOOL", protobuf.packed(1, [1, 0]), [True, False]), ("INT8", protobuf.packed(2, [-1, 5]), [-1, 5]),
        ("INT64", protobuf.packed(3, [-(2**63), 300]), [-(2**63), 300]),
        ("UINT16", protobuf.packed(4, [1, 65535]), [1, 65535]),
        ("UINT64", protobuf.packed(5, [2**64 - 1, 0]), [2**64 - 1, 0]),
        ("FP32", protobuf.message(6, struct.pack("<2f", 1, 2)), [1, 2]),
        ("FP32", b"\x35" + struct.pack("<f", 1) + b"\x35" + struct.pack("<f", 2), [1, 2]),
        ("FP64", protobuf.message(7, struct.pack("<2d", 1, 2)), [1, 2]),
        ("BYTES", protobuf.message(8, b"a") + protobuf.message(8, b""), ["a", ""]),
    ],
)  # fmt: skip
def test_typed_contents(datatype: str, contents: bytes, expected: Any) -> None:
    infer = messages.read(GRPC, message(described(datatype, 2, contents=contents)))
    assert infer.inputs["x"].flat() == expected


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff", b"\x0a\x05m", message(described("INT8", 1), raw=(b"1", b"2")),
        message(described("INT8", 1), raw=(b"12",)), message(described("INT8", 1, contents=protobuf.packed(2, [300]))),
        message(described("INT8", 1, contents=protobuf.packed(3, [3]))), message(described("FP16", 1)),
        message(described("INT8", 1, contents=protobuf.packed(2, [3])), raw=(b"1",)), b"\x2a\x01\x18", b"\x2b\x2c",
        message(described("INT8", -1), raw=(b"",)), message(b"\x18" + b"\xff" * 11),
    ],
)  # fmt: skip
def test_a_message_that_does_not_fit_is_refused(sent: bytes) -> None:
    with pytest.raises(ClientError):
        messages.read(GRPC, sent)


def test_parameters_of_every_kind_are_read() -> None:
    def parameter(name: str, value: bytes) -> bytes:
        return protobuf.message(4, protobuf.text(1, name) + protobuf.message(2, value))

    more = (
        parameter("yes", b"\x08\x01") + parameter("minus", b"\x10" + protobuf.put(-3)) + parameter("text", b"\x1a\x01t")
        + parameter("real", b"\x21" + struct.pack("<d", 0.5)) + parameter("large", b"\x28" + protobuf.put(2**63))
    )  # fmt: skip
    infer = messages.read(GRPC, message(described("INT8", 1), raw=(b"1",), more=more))
    assert infer.parameters == {"yes": True, "minus": -3, "text": "t", "real": 0.5, "large": 2**63}


# Results of scripts


def test_results_become_tensors() -> None:
    if numpy is None:
        pytest.skip("needs numpy")
    value = {
        "array": numpy.arange(4, dtype=">f4").reshape(2, 2), "turned": numpy.arange(6, dtype="i4").reshape(2, 3).T,
        "list": [[1, 2], [3, 4]], "mixed": [1, 2.5], "text": "a", "object": {"a": 1}, "names": numpy.array(["a", "bc"]),
        "yes": True, "empty": numpy.zeros((0, 3), "f8"), "bytes": b"\xff",
    }  # fmt: skip
    found = {tensor.name: tensor for tensor in outputs.tensors_of(value, lambda other: json.dumps(other).encode())}
    assert {name: (one.datatype, one.shape) for name, one in found.items()} == {
        "array": ("FP32", (2, 2)), "turned": ("INT32", (3, 2)), "list": ("INT64", (2, 2)), "mixed": ("FP64", (2,)),
        "text": ("BYTES", (1,)), "object": ("BYTES", (1,)), "names": ("BYTES", (2,)), "yes": ("BOOL", (1,)),
        "empty": ("FP64", (0, 3)), "bytes": ("BYTES", (1,)),
    }  # fmt: skip
    assert found["array"].nested() == [[0, 1], [2, 3]]
    assert found["turned"].nested() == [[0, 3], [1, 4], [2, 5]]
    assert found["object"].data == [b'{"a": 1}']
