"""Tensors of decorated scripts: each is a parameter of `run()`, by its name, as its schema describes it."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from panglot_worker.tensors.outputs import OUTPUT, nested_value
from panglot_worker.tensors.tensors import Tensor, TensorSpec

DATATYPES = {"integer": "INT64", "number": "FP64", "boolean": "BOOL", "string": "BYTES"}


def specs(schemas: Dict[str, Any]) -> Tuple[List[TensorSpec], List[TensorSpec]]:
    """Inputs and outputs, as far as the schemas tell them; an object travels as one element of text."""
    given = schemas["input"].get("properties", {})
    inputs = [_spec(name, schema) for name, schema in given.items()]
    answered = schemas["output"]
    parts = answered.get("properties") if answered.get("type") == "object" else None
    outputs = [_spec(name, schema) for name, schema in parts.items()] if parts else [_spec(OUTPUT, answered)]
    return inputs, outputs


def _spec(name: str, schema: Dict[str, Any]) -> TensorSpec:
    depth = 0
    while schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        schema, depth = schema["items"], depth + 1
    if schema.get("type") not in DATATYPES:
        return TensorSpec(name, "BYTES", (1,))
    return TensorSpec(name, DATATYPES[schema["type"]], [-1] * depth or [1])


def values_of(tensors: Dict[str, Tensor], schema: Dict[str, Any]) -> Dict[str, Any]:
    """The values that a client of the platform would have sent as JSON: lists, and one element where no list is due."""
    properties = schema.get("properties", {})
    values: Dict[str, Any] = {}
    for name, tensor in tensors.items():
        value = nested_value(tensor)
        if properties.get(name, {}).get("type") in DATATYPES:
            while isinstance(value, list) and len(value) == 1:
                value = value[0]
        values[name] = value
    return values
