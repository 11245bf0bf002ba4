"""The types of inputs, as the hints of scripts name them."""

from __future__ import annotations

import enum
import os
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Tuple, Union

NONE = type(None)
LIST, UNION = "list", "union"
SCHEMAS: Dict[str, Dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "path": {"type": "string", "format": "uri"},
    "file": {"type": "string", "format": "uri"},
    "secret": {"type": "string", "format": "password", "writeOnly": True, "x-cog-secret": True},
    "dict": {"type": "object"},
    "any": {},
}


class Kind(NamedTuple):
    """The type of an input: a name of SCHEMAS, a list, or a union of several."""

    name: str
    optional: bool = False
    inner: Tuple["Kind", ...] = ()
    """That of a list's items; those of which a union is."""
    choices: Tuple[Any, ...] = ()
    """The values of an enumeration or of Literal."""

    @property
    def is_file(self) -> bool:
        return self.name in ("path", "file")

    @property
    def is_list(self) -> bool:
        return self.name == LIST


def kind_of(annotation: Any, names: Dict[Any, str]) -> Optional[Kind]:
    """The kind for an annotation; `names` has those of the platform's own types. None where it is unknown."""
    if annotation is Any or annotation is None:
        return Kind("any", optional=True)
    for known, name in names.items():
        if annotation is known:
            return Kind(name)
    origin, arguments = getattr(annotation, "__origin__", None), tuple(getattr(annotation, "__args__", ()))
    if hasattr(annotation, "__metadata__"):
        return kind_of(origin, names) or Kind("any")
    if origin is Literal:
        kinds = {type(value) for value in arguments}
        return Kind("str" if kinds == {str} else "int" if kinds == {int} else "any", choices=arguments)
    if origin in (list, List) or annotation in (list, List):
        # Before CPython 3.9 a bare `List` has a type variable as its argument, which `repr` shows with a tilde.
        inner = kind_of(arguments[0], names) if arguments and not repr(arguments[0]).startswith("~") else Kind("any")
        return Kind(LIST, inner=(inner,)) if inner is not None else None
    if origin is dict:
        return Kind("dict")
    if origin is not None and origin is not Union:
        # Another container: nothing is known of what is in it.
        return Kind("any")
    if isinstance(annotation, type):
        return _of_class(annotation)
    # `int | str` has arguments, but no origin.
    return _of_union(arguments, names) if arguments else None


def _of_class(annotation: type) -> Optional[Kind]:
    if issubclass(annotation, enum.Enum):
        choices = tuple(member.value for member in annotation)
        return Kind("int" if issubclass(annotation, int) else "str", choices=choices)
    if issubclass(annotation, dict):
        return Kind("dict")
    return Kind("path") if issubclass(annotation, os.PathLike) else None


def _of_union(arguments: Tuple[Any, ...], names: Dict[Any, str]) -> Optional[Kind]:
    members = [kind_of(argument, names) for argument in arguments if argument is not NONE]
    known = tuple(member for member in members if member is not None)
    if len(known) < len(members):
        return None
    optional = NONE in arguments
    return known[0]._replace(optional=optional) if len(known) == 1 else Kind(UNION, optional, known)


def schema_of(kind: Kind, limits: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """The schema of a kind; `limits` are what `Input(...)` says of values, by the kinds that it is said of."""
    if kind.name == UNION:
        return {"anyOf": [_inner_schema(each, limits) for each in kind.inner]}
    if kind.is_list:
        return {"type": "array", "items": _inner_schema(kind.inner[0], limits)}
    return dict(SCHEMAS[kind.name])


def _inner_schema(kind: Kind, limits: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    schema = {**schema_of(kind, limits), **limits.get(kind.name, {})}
    if kind.choices:
        schema["enum"] = list(kind.choices)
    return {**schema, "nullable": True} if kind.optional else schema
