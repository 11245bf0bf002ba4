"""Type hints as JSON Schema, for the description of a served API."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import typing
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from panglot_worker.bodies.codec import File

Schema = Dict[str, Any]

SIMPLE: Tuple[Tuple[Any, Schema], ...] = (
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (str, {"type": "string"}),
    (type(None), {"type": "null"}),
    (bytes, {"type": "string", "format": "binary"}),
    (File, {"type": "string", "format": "binary"}),
)


DEEPEST = 8


def of_result(function: Callable[..., Any]) -> Schema:
    return of_hint(hints_of(function).get("return", Any))


def hints_of(function: Callable[..., Any]) -> Dict[str, Any]:
    """The type hints of a function or class; none where one cannot be evaluated: it must not stop the load."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # noqa: BLE001  hints of scripts raise anything
        return {}


def of_hint(hint: Any, depth: int = DEEPEST) -> Schema:
    """The schema of a type hint; `{}` for what has none. Types that contain themselves are cut off."""
    if not depth:
        return {}
    for simple, schema in SIMPLE:
        if hint is simple:
            return dict(schema)
    origin = getattr(hint, "__origin__", None)
    if origin is not None or type(hint).__name__ == "UnionType":
        return _of_generic(hint, origin, getattr(hint, "__args__", ()), depth - 1)
    if isinstance(hint, type):
        return _of_class(hint, depth - 1)
    return {}


def _of_generic(hint: Any, origin: Any, arguments: Tuple[Any, ...], depth: int) -> Schema:
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [of_hint(argument, depth) for argument in arguments]}
    if getattr(hint, "__metadata__", None) is not None:
        return of_hint(origin, depth)
    if origin is getattr(typing, "Literal", None):
        return {"enum": list(arguments)}
    if origin in (list, set, frozenset) or _is_sequence(origin):
        return {"type": "array", "items": of_hint(arguments[0], depth) if arguments else {}}
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": of_hint(arguments[0], depth)}
        return {"type": "array", "minItems": len(arguments), "maxItems": len(arguments)}
    if isinstance(origin, type) and issubclass(origin, dict):
        return {"type": "object", "additionalProperties": of_hint(arguments[1], depth) if len(arguments) == 2 else {}}
    return {}


def _is_sequence(origin: Any) -> bool:
    import collections.abc

    return isinstance(origin, type) and issubclass(origin, collections.abc.Sequence) and origin is not tuple


def _of_class(hint: type, depth: int) -> Schema:
    if hint is list or hint is tuple:
        return {"type": "array", "items": {}}
    if hint is dict:
        return {"type": "object"}
    if issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        hints = hints_of(hint)
        required = [
            field.name
            for field in dataclasses.fields(hint)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        return _object({name: of_hint(value, depth) for name, value in hints.items()}, required)
    if hasattr(hint, "__total__") and hasattr(hint, "__annotations__"):
        hints = hints_of(hint)
        required = sorted(getattr(hint, "__required_keys__", hints if getattr(hint, "__total__", True) else ()))
        return _object({name: of_hint(value, depth) for name, value in hints.items()}, required)
    return {}


def _object(properties: Dict[str, Schema], required: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def documentation(thing: Any) -> Optional[str]:
    """The first paragraph of the docstring of a function, class or module."""
    text = inspect.getdoc(thing) if sys.flags.optimize < 2 else None
    return text.split("\n\n")[0].replace("\n", " ") if text else None


def of_object(properties: Mapping[str, Any], required: Optional[Sequence[str]] = None) -> Dict[str, Any]:
    """An object with these fields. Without `required`, all are."""
    needed = list(properties) if required is None else list(required)
    return {"type": "object", "properties": dict(properties), "required": needed}


def of_tensor(datatype: str, shape: Sequence[int]) -> Dict[str, Any]:
    """Arrays in arrays, as deep as the shape says; a size below 0 is free. `datatype` is one of the protocol's."""
    kind = {"BOOL": "boolean", "BYTES": "string"}.get(datatype, "integer" if "INT" in datatype else "number")
    schema: Dict[str, Any] = {"type": kind}
    for size in reversed(shape):
        schema = {"type": "array", "items": schema}
        if size >= 0:
            schema.update(minItems=size, maxItems=size)
    return schema
