"""Requests and answers over gRPC: ModelInferRequest and ModelInferResponse."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.line.many_buffers import many
from panglot_worker.tensors import protobuf, tensors
from panglot_worker.tensors.infer import (
    Infer,
    WantedOutput,
    Wishes,
    check_wanted,
    gathered,
    refuse_unsupported,
    unfolded,
)
from panglot_worker.tensors.protobuf import EIGHT, LENGTH, VARINT, Malformed
from panglot_worker.tensors.tensors import Tensor

TYPED = {"BOOL": 1, "INT8": 2, "INT16": 2, "INT32": 2, "INT64": 3, "UINT8": 4, "UINT16": 4, "UINT32": 4, "UINT64": 5,
         "FP32": 6, "FP64": 7, "BYTES": 8}  # fmt: skip
"""Which field of InferTensorContents holds the elements of a datatype."""
WANTS_END, IS_LAST = "triton_enable_empty_final_response", "triton_final_response"
"""Parameters of Triton: of a request on a stream, and of every answer there."""


class InputMessage(NamedTuple):
    """An input as the message tells it."""

    name: str
    datatype: str
    shape: List[int]
    parameters: Dict[str, Any]
    contents: memoryview


def read(head: wire.Head, body: wire.Buffer) -> Infer:
    """The request. Raises ClientError."""
    try:
        return _request(head, body)
    except (Malformed, IndexError, UnicodeDecodeError, TypeError):
        raise ClientError("the message is no ModelInferRequest") from None


def _request(head: wire.Head, body: wire.Buffer) -> Infer:
    given: List[InputMessage] = []
    raw: List[memoryview] = []
    wanted: List[WantedOutput] = []
    parameters: Dict[str, Any] = {}
    known = ""
    for number, kind, value in protobuf.fields_of(body):
        if number == 5:
            given.append(_input(value))
        elif number == 7:
            raw.append(value)
        elif number == 3:
            known = str(value, "utf-8")
        elif number == 4:
            parameters.update(_parameter(value))
        elif number == 6:
            wanted.append(_wanted(value))
        elif kind != LENGTH:
            continue
    if raw and len(raw) != len(given):
        raise ClientError("there are %d raw_input_contents for %d inputs" % (len(raw), len(given)))
    inputs = [unfolded(_tensor(tensor, raw[at] if raw else None), tensor.parameters) for at, tensor in enumerate(given)]
    model, version = str(head.model, "utf-8", "replace"), str(head.version, "utf-8", "replace")
    end = parameters.pop(WANTS_END, False) is True
    wishes = Wishes(head.form, model, version, known, check_wanted(wanted), True, end=end)
    return Infer(wishes, gathered(inputs), parameters)


def _input(view: memoryview) -> InputMessage:
    name = datatype = ""
    shape: List[int] = []
    parameters: Dict[str, Any] = {}
    contents = memoryview(b"")
    for number, kind, value in protobuf.fields(view):
        if number == 1:
            name = str(value, "utf-8")
        elif number == 2:
            datatype = str(value, "utf-8")
        elif number == 3:
            shape += [protobuf.signed(size) for size in protobuf.numbers(kind, value)]
        elif number == 4:
            parameters.update(_parameter(value))
        elif number == 5 and kind == LENGTH:
            contents = value
    return InputMessage(name, datatype, shape, parameters, contents)


def _wanted(view: memoryview) -> WantedOutput:
    name = ""
    for number, _, value in protobuf.fields(view):
        if number == 1:
            name = str(value, "utf-8")
        elif number == 2:
            refuse_unsupported(_parameter(value), "output '%s'" % name)
    return WantedOutput(name)


def _parameter(view: memoryview) -> Dict[str, Any]:
    """An entry of a map of parameters."""
    key, parameter = "", None
    for number, _, value in protobuf.fields(view):
        if number == 1:
            key = str(value, "utf-8")
        elif number == 2:
            parameter = _parameter_value(value)
    return {key: parameter}


def _parameter_value(view: memoryview) -> Any:
    value_read: Any = None
    for number, kind, value in protobuf.fields(view):
        if number in (1, 2, 5) and kind == VARINT:
            value_read = bool(value) if number == 1 else protobuf.signed(value) if number == 2 else value
        elif number == 3:
            value_read = str(value, "utf-8")
        elif number == 4 and kind == EIGHT:
            (value_read,) = protobuf.DOUBLE.unpack(value)
    return value_read


def _tensor(given: InputMessage, raw: Any) -> Tensor:
    """The tensor of an input, from its raw contents or its typed ones. Raises ClientError."""
    name, datatype = given.name, given.datatype
    refuse_unsupported(given.parameters, "input '%s'" % name)
    kind = tensors.known(name, datatype)
    shape = tensors.checked_shape(name, given.shape)
    if raw is not None:
        # Some clients send empty contents beside raw ones.
        if len(given.contents):
            raise ClientError("input '%s' has contents, and there are raw_input_contents too" % name)
        return tensors.from_raw(name, datatype, shape, raw)
    if datatype not in TYPED:
        raise ClientError("input '%s': %s travels in raw_input_contents only" % (name, datatype))
    contents = _contents(given, TYPED[datatype])
    if datatype == "BYTES":
        return tensors.from_elements(name, shape, [bytes(element) for element in contents])
    if datatype in ("FP32", "FP64"):
        tensors.check_count(name, shape, sum(map(len, contents)) // kind.width)
        return tensors.from_raw(name, datatype, shape, contents[0] if len(contents) == 1 else b"".join(contents))
    return tensors.from_values(name, kind, shape, contents)


def _contents(given: InputMessage, field: int) -> List[Any]:
    """The typed elements of an input: numbers, or pieces of bytes. Raises ClientError for those of another type."""
    elements: List[Any] = []
    for number, kind, value in protobuf.fields(given.contents):
        if number != field:
            about = (given.name, given.datatype, number, field)
            raise ClientError("input '%s' is %s, and field %d of its contents is set, not %d" % about)
        if field >= 6:
            elements.append(value)
        elif field == 1:
            elements += [bool(element) for element in protobuf.numbers(kind, value)]
        elif field in (2, 3):
            elements += [protobuf.signed(element) for element in protobuf.numbers(kind, value)]
        else:
            elements += protobuf.numbers(kind, value)
    return elements


# Answers


def answer(wishes: Wishes, outputs: List[Tensor], parameters: Optional[Dict[str, Any]] = None) -> wire.Buffer:
    """A ModelInferResponse with these outputs. Their contents are always raw: Triton's client reads no others."""
    head = [protobuf.text(1, wishes.model), protobuf.text(2, wishes.version), protobuf.text(3, wishes.id)]
    if parameters:
        head += [protobuf.message(4, _written(name, value)) for name, value in parameters.items()]
    parts: List[Any] = []
    for tensor in outputs:
        about = protobuf.text(1, tensor.name) + protobuf.text(2, tensor.datatype) + protobuf.packed(3, tensor.shape)
        head.append(protobuf.message(5, about))
        raw = tensor.raw()
        parts += (protobuf.start(6, len(raw)), raw)
    return many(b"".join(head), *parts)


def part(wishes: Wishes, outputs: List[Tensor], parameters: Optional[Dict[str, Any]], last: bool) -> wire.Buffer:
    """A ModelInferResponse on a stream, which says whether it is the last to its request."""
    return answer(wishes, outputs, {**(parameters or {}), IS_LAST: last})


def _written(name: str, value: Any) -> bytes:
    """An entry of a map of parameters."""
    if isinstance(value, bool):
        written = b"\x08" + protobuf.put(value)
    elif isinstance(value, int):
        written = (b"\x10" if value < 1 << 63 else b"\x28") + protobuf.put(value)
    elif isinstance(value, float):
        written = b"\x21" + protobuf.DOUBLE.pack(value)
    else:
        written = protobuf.message(3, value.encode("utf-8", "replace"))
    return protobuf.text(1, name) + protobuf.message(2, written)


# Written and read by a model that calls another


def request(infer: Infer) -> wire.Buffer:
    """A ModelInferRequest, with the bytes of its tensors raw."""
    wishes = infer.wishes
    head = [protobuf.text(1, wishes.model), protobuf.text(2, wishes.version), protobuf.text(3, wishes.id)]
    head += [protobuf.message(4, _written(name, value)) for name, value in infer.parameters.items()]
    parts: List[Any] = []
    for tensor in infer.inputs.values():
        about = protobuf.text(1, tensor.name) + protobuf.text(2, tensor.datatype) + protobuf.packed(3, tensor.shape)
        head.append(protobuf.message(5, about))
        raw = tensor.raw()
        parts += (protobuf.start(7, len(raw)), raw)
    head += [protobuf.message(6, protobuf.text(1, output.name)) for output in wishes.wanted]
    return many(b"".join(head), *parts)


class InferResponse(NamedTuple):
    """The outputs of an answer, and the parameters beside them."""

    outputs: Dict[str, Tensor]
    parameters: Dict[str, Any]


def response(body: wire.Buffer) -> InferResponse:
    """The content of a ModelInferResponse. Raises ClientError for bytes that are none."""
    given: List[InputMessage] = []
    raw: List[memoryview] = []
    parameters: Dict[str, Any] = {}
    try:
        for number, _, value in protobuf.fields(memoryview(body)):
            if number == 5:
                given.append(_input(value))
            elif number == 6:
                raw.append(value)
            elif number == 4:
                parameters.update(_parameter(value))
        tensors_read = [_tensor(about, content) for about, content in zip(given, raw)]
    except (Malformed, IndexError, UnicodeDecodeError, TypeError):
        raise ClientError("the message is no ModelInferResponse") from None
    return InferResponse({tensor.name: tensor for tensor in tensors_read}, parameters)
