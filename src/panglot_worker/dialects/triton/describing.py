"""The API of a model, for the documents and the line of curl."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from panglot_worker.bodies.schema import documentation, of_object, of_tensor
from panglot_worker.dialects.base import Package
from panglot_worker.dialects.triton.configured import FREE, Configuration, ConfiguredTensor
from panglot_worker.line.description import Description, ExampleRequest

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
    return of_object({tensor.name: _schema(about, tensor) for tensor in tensors}, required)


def _schema(about: Configuration, tensor: ConfiguredTensor) -> Dict[str, Any]:
    shape = list(about.spec(tensor).shape)
    return {**of_tensor(tensor.datatype, shape), "description": "%s %s" % (tensor.datatype, shape)}


def _example(about: Configuration) -> Optional[ExampleRequest]:
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
