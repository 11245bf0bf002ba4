"""One of a few values: Literal and Enum."""

from __future__ import annotations

import enum
from typing import Any, Dict, Iterable, List, Tuple, Type

from panglot_worker.hints.kind import Kind, from_text
from panglot_worker.hints.misfit import must_be, shown

PLAIN = (str, int, float, bool, type(None))
"""The types whose values JSON and a text can name."""


def of_literal(values: Iterable[Any]) -> Kind:
    """One of the values that a Literal lists, each as itself; members of an Enum by their values."""
    return _choice([(value.value if isinstance(value, enum.Enum) else value, value) for value in values])


def of_enum(enumeration: Type[enum.Enum]) -> Kind:
    """A member of an Enum: by its value, or by its name where JSON cannot hold the values."""
    members = list(enumeration)
    if all(type(member.value) in PLAIN for member in members):
        return _choice([(member.value, member) for member in members])
    return _choice([(member.name, member) for member in members])


def _choice(pairs: List[Tuple[Any, Any]]) -> Kind:
    """The kind of a value that may be one of these. Each is sent as the first of its pair."""
    by_value: Dict[Any, Any] = {}
    by_text: Dict[str, Any] = {}
    own: Dict[Any, Any] = {}
    for sent, meant in pairs:
        by_value.setdefault(_key(sent), meant)
        by_text.setdefault(sent if isinstance(sent, str) else shown(sent), meant)
        own.setdefault((type(meant), meant), meant)
    values = [sent for sent, _ in pairs]
    expects = _one_of(values)

    def convert(value: Any) -> Any:
        try:
            return by_value[_key(value)]
        except (KeyError, TypeError):
            pass
        try:
            return own[type(value), value]
        except (KeyError, TypeError):
            raise must_be(expects, value) from None

    def of_text(text: str) -> Any:
        for spelled in (text, text.strip()):
            if spelled in by_text:
                return by_text[spelled]
        raise must_be(expects, text)

    def may_fit(value: Any) -> bool:
        try:
            return _key(value) in by_value
        except TypeError:
            return False

    schema = {"enum": values, **_type_of(values)}
    return Kind(expects, convert, from_text(expects, of_text), schema, values[0] if values else None, may_fit=may_fit)


def _key(value: Any) -> Tuple[bool, Any]:
    """A key that is equal for values which JSON does not tell apart: 1 and 1.0, but not 1 and true."""
    return (isinstance(value, bool), value)


def _one_of(values: List[Any]) -> str:
    names = [shown(value) for value in values[:20]] + (["..."] if len(values) > 20 else [])
    return names[0] if len(names) == 1 else "one of " + ", ".join(names)


def _type_of(values: List[Any]) -> Dict[str, str]:
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    kinds = {type(value) for value in values}
    return {"type": names[kinds.pop()]} if len(kinds) == 1 and kinds <= set(names) else {}
