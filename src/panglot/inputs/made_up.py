"""A value that fits a JSON schema, for the request of a package without an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIMPLE: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "null": None}
DEEPEST = 6


class NoValue(Exception):
    """The schema says too little, or asks for a value that cannot be made up."""


def value_of(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """A small value that fits, with the defaults of the schema. Raises NoValue."""
    root = root or schema
    # The depth ends schemas that refer to themselves.
    if depth > DEEPEST or schema.get("format") == "binary":
        raise NoValue
    if "$ref" in schema:
        return value_of(_referred(str(schema["$ref"]), root), root, depth + 1)
    for name in ("example", "default", "const"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if schema.get(name):
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return value_of(schema[name][0], root, depth + 1)
    return _by_type(schema, root, depth)


def _by_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" and schema.get("properties"):
        needed = schema.get("required") or list(schema["properties"])
        return {name: value_of(schema["properties"][name], root, depth + 1) for name in needed}
    if kind == "array" and schema.get("items"):
        count = max(1, min(8, int(schema.get("minItems", 1))))
        return [value_of(schema["items"], root, depth + 1)] * count
    if kind in ("integer", "number"):
        least = schema.get("minimum", 1)
        return max(SIMPLE[str(kind)], least) if isinstance(least, int | float) else SIMPLE[str(kind)]
    if kind not in SIMPLE:
        raise NoValue
    return SIMPLE[str(kind)]


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a reference within the document. Raises NoValue."""
    node: Any = root
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict):
        raise NoValue
    return node
