"""Triton's extension `generate`: a JSON object with a value for each input, and one with a value for each output."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from panglot_worker.bodies import jsontext, streams
from panglot_worker.bodies.multipart import Limits
from panglot_worker.errors import ClientError
from panglot_worker.line import wire
from panglot_worker.tensors import tensors
from panglot_worker.tensors.infer import GENERATE_STREAM, Infer, Wishes
from panglot_worker.tensors.rest import RestReader, inflated, json_data
from panglot_worker.tensors.tensors import Shape, Tensor, TensorSpec

EVENTS = "text/event-stream; charset=utf-8"


def read(reader: RestReader, head: wire.Head, body: wire.Buffer, rows: bool) -> Infer:
    """The request. A field that names no input is a parameter. Raises ClientError."""
    view = memoryview(body)
    if head.encoding not in (b"", b"identity"):
        view = memoryview(inflated(head.encoding.decode("latin-1").lower(), view, reader.limits.output_bytes))
    if len(view) > reader.limits.json_bytes:
        raise ClientError("the JSON of the request is larger than %d bytes" % reader.limits.json_bytes, 413)
    value = jsontext.loads(view, reader.limits.json_depth)
    if type(value) is not dict:
        raise ClientError("send a JSON object with a value for each input")
    specs = {spec.name: spec for spec in reader.inputs}
    inputs: Dict[str, Tensor] = {}
    parameters: Dict[str, Any] = {}
    known = ""
    for name, given in value.items():
        if name in specs:
            inputs[name] = _tensor(specs[name], given, rows)
        elif name == "id":
            known = str(given)
        elif name == "parameters" and type(given) is dict:
            parameters.update({key: _parameter(key, parameter) for key, parameter in given.items()})
        else:
            parameters[name] = _parameter(name, given)
    model, version = str(head.model, "utf-8", "replace"), str(head.version, "utf-8", "replace")
    return Infer(Wishes(head.form, model, version, known), inputs, parameters)


def _parameter(name: str, value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)):
        raise ClientError(
            "parameter '%s' has invalid type. It should be either 'int', 'bool', or 'string'." % name[:80]
        )
    return value


def _tensor(spec: TensorSpec, value: Any, rows: bool) -> Tensor:
    flat = value if type(value) is list else [value]
    nesting: List[int] = []
    level: Any = value
    while type(level) is list:
        nesting.append(len(level))
        level = level[0] if level else None
    flat = tensors.flattened(spec.name, flat)
    return tensors.from_json(spec.name, spec.datatype, _shape(spec, nesting, len(flat), rows), flat)


def _shape(spec: TensorSpec, nesting: List[int], count: int, rows: bool) -> Shape:
    """The shape for so many values: their own, if they are nested as deeply as the model wants; else one that fits."""
    if len(nesting) == len(spec.shape):
        return tuple(nesting)
    sizes = list(spec.shape)
    if rows and sizes and sizes[0] < 0:
        sizes[0] = 1
    free = [at for at, size in enumerate(sizes) if size < 0]
    for at in free[1:]:
        sizes[at] = 1
    if free:
        rest = tensors.count_of([size for at, size in enumerate(sizes) if at != free[0]])
        sizes[free[0]] = count // rest if rest else 0
    if tensors.count_of(sizes) != count:
        raise ClientError("The schema can not convert input '%s' to tensor with proper shape" % spec.name)
    return tuple(sizes)


def answer(
    wishes: Wishes, outputs: List[Tensor], nan: str, limits: Limits, parameters: Optional[Dict[str, Any]] = None
) -> Tuple[str, bytes]:
    """The content type and the body of an answer: a value for an output of one element, else its elements in a row."""
    value: Dict[str, Any] = {"model_name": wishes.model, "model_version": wishes.version}
    if wishes.id:
        value["id"] = wishes.id
    for tensor in outputs:
        flat = json_data(tensor)
        value[tensor.name] = flat[0] if len(flat) == 1 else flat
    if parameters:
        value["parameters"] = parameters
    text, _ = jsontext.dumps(value, str, nan, limits.output_depth, limits.output_bytes)
    if wishes.form == GENERATE_STREAM:
        return EVENTS, streams.written(text, streams.EVENTS)
    return "application/json", text
