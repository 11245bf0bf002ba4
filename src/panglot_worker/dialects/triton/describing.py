"""The API of a model, for the documents and the line of curl."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from panglot_worker.bodies.schema import documentation
from panglot_worker.dialects.base import Package
from panglot_worker.dialects.triton.configured import FREE, Configuration, ConfiguredTensor
from panglot_worker.line.description import Description, Example

MOST = 64
"""Numbers of an example that is shown."""


def describe(package: Package, about: Configuration, kind: Any) -> Description:
    """What clients send and get, by the configuration."""
    return {
        "entry": "%s.execute" % kind.__name__,
        "stages": [],
        "summary": documentation(kind) or "",
        "request_schema": _object(about, about.inputs),
        "response_schema": _object(about, about.outputs),
        "example": _example(about),
        "streams": about.decoupled,
    }


def _object(about: Configuration, tensors: List[ConfiguredTensor]) -> Dict[str, Any]:
    required = [tensor.name for tensor in tensors if not tensor.optional]
    return {
        "type": "object",
        "properties": {tensor.name: _schema(about, tensor) for tensor in tensors},
        "required": required,
    }


def _schema(about: Configuration, tensor: ConfiguredTensor) -> Dict[str, Any]:
    kind = {"BOOL": "boolean", "BYTES": "string"}.get(
        tensor.datatype, "integer" if "INT" in tensor.datatype else "number"
    )
    schema: Dict[str, Any] = {"type": kind}
    shape = list(about.spec(tensor).shape)
    for size in reversed(shape):
        schema = {"type": "array", "items": schema}
        if size != FREE:
            schema.update(minItems=size, maxItems=size)
    return {**schema, "description": "%s %s" % (tensor.datatype, shape)}


def _example(about: Configuration) -> Optional[Example]:
    """One row of ones, or of words, where that is short."""
    value = {}
    for tensor in about.inputs:
        shape = [1 if size == FREE else size for size in about.spec(tensor).shape]
        count = 1
        for size in shape:
            count *= size
        if count > MOST:
            return None
        element: Any = {"BYTES": "text", "BOOL": True}.get(tensor.datatype, 1)
        for size in reversed(shape):
            element = [element] * size
        value[tensor.name] = element
    return {"kind": "json", "value": value}
