"""The types of inputs: what clients may send, and what the script gets. Errors have the words of pydantic 1."""

from __future__ import annotations

import enum
import re
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Tuple

NONE = type(None)
TRUE, FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
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


class BadValue(Exception):
    """Why an input does not take a value: the message and the type of pydantic, and the values in the message."""

    def __init__(self, message: str, kind: str, context: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.context = context


class Kind(NamedTuple):
    """The type of an input: a name of SCHEMAS, and whether it is a list of such, or may be None."""

    name: str
    many: bool = False
    optional: bool = False

    @property
    def is_file(self) -> bool:
        return self.name in ("path", "file")

    @property
    def schema(self) -> Dict[str, Any]:
        own = dict(SCHEMAS[self.name])
        return {"type": "array", "items": own} if self.many else own


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
    if NONE in arguments:
        rest = [argument for argument in arguments if argument is not NONE]
        inner = kind_of(rest[0], names) if len(rest) == 1 else Kind("any")
        return inner._replace(optional=True) if inner is not None else None
    # Before CPython 3.9 a bare `List` has a type variable as its argument, which `repr` shows with a tilde.
    if origin in (list, List) or annotation in (list, List):
        inner = kind_of(arguments[0], names) if arguments and not repr(arguments[0]).startswith("~") else Kind("any")
        return Kind(inner.name, many=True) if inner is not None and not inner.many else None
    if origin is dict or annotation is dict:
        return Kind("dict")
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return Kind("int" if issubclass(annotation, int) else "str")
    if origin is Literal:
        kinds = {type(value) for value in arguments}
        return Kind("str" if kinds == {str} else "int" if kinds == {int} else "any")
    # A union of several JSON types.
    return Kind("any") if arguments else None


def choices_of(annotation: Any) -> Optional[List[Any]]:
    """The values that an annotation allows: those of an enumeration or of Literal; None: it names none."""
    arguments = tuple(getattr(annotation, "__args__", ()))
    if NONE in arguments:
        rest = [argument for argument in arguments if argument is not NONE]
        return choices_of(rest[0]) if len(rest) == 1 else None
    if getattr(annotation, "__origin__", None) is Literal:
        return list(arguments)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [member.value for member in annotation]
    return None


def read(value: Any, name: str) -> Any:
    """A value of JSON as that of a plain kind. Raises BadValue."""
    reader = READERS.get(name)
    return reader(value) if reader is not None else value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise BadValue("str type expected", "type_error.str")


def _whole(value: Any) -> int:
    try:
        if isinstance(value, (int, float, str)) and not (isinstance(value, float) and value != value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise BadValue("value is not a valid integer", "type_error.integer")


def _number(value: Any) -> float:
    try:
        if isinstance(value, (int, float, str)):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise BadValue("value is not a valid float", "type_error.float")


def _truth(value: Any) -> bool:
    text = value.lower() if isinstance(value, str) else str(value).lower() if isinstance(value, (bool, int)) else ""
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise BadValue("value could not be parsed to a boolean", "type_error.bool")


def _dict(value: Any) -> Dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise BadValue("value is not a valid dict", "type_error.dict")


READERS = {"str": _text, "int": _whole, "float": _number, "bool": _truth, "secret": _text, "dict": _dict,
           "path": _text, "file": _text}  # fmt: skip


UNLIMITED = (None, None, None, None)
EXACT = {"str": {str}, "int": {int}, "float": {float}, "bool": {bool}, "dict": {dict}}


def is_right(values: List[Any], name: str) -> bool:
    """Whether `read` would surely leave all values as they are; a quick look, since lists may be long."""
    return set(map(type, values)) == EXACT.get(name)


def allows_all(field: Any) -> bool:
    """Whether `Input(...)` says nothing that `check` could refuse."""
    limits = (field.ge, field.le, field.min_length, field.max_length)
    return limits == UNLIMITED and not field.choices and not field.regex


def check(value: Any, field: Any) -> None:
    """Check a value by what `Input(...)` says of it. Raises BadValue."""
    for check_one in (_check_choices, _check_range, _check_length, _check_pattern):
        check_one(value, field)


def _check_choices(value: Any, field: Any) -> None:
    if field.choices and value not in field.choices:
        permitted = ", ".join(map(repr, field.choices))
        message = "value is not a valid enumeration member; permitted: %s" % permitted
        raise BadValue(message, "type_error.enum", {"enum_values": list(field.choices)})


def _check_range(value: Any, field: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    limits: Tuple[Tuple[Any, bool, str, str], ...] = (
        (field.ge, field.ge is not None and not value >= field.ge, "greater", "not_ge"),
        (field.le, field.le is not None and not value <= field.le, "less", "not_le"),
    )
    for limit, is_beyond, word, code in limits:
        if is_beyond:
            message = "ensure this value is %s than or equal to %s" % (word, limit)
            raise BadValue(message, "value_error.number.%s" % code, {"limit_value": limit})


def _check_length(value: Any, field: Any) -> None:
    if not isinstance(value, str):
        return
    if field.min_length is not None and len(value) < field.min_length:
        message = "ensure this value has at least %d characters" % field.min_length
        raise BadValue(message, "value_error.any_str.min_length", {"limit_value": field.min_length})
    if field.max_length is not None and len(value) > field.max_length:
        message = "ensure this value has at most %d characters" % field.max_length
        raise BadValue(message, "value_error.any_str.max_length", {"limit_value": field.max_length})


def _check_pattern(value: Any, field: Any) -> None:
    if field.regex and isinstance(value, str) and not re.match(field.regex, value):
        message = 'string does not match regex "%s"' % field.regex
        raise BadValue(message, "value_error.str.regex", {"pattern": field.regex})
