"""Values of inputs: what clients may send, and what is wrong with it in the words of pydantic 1."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

from panglot_worker.dialects.cog.kinds import LIST, UNION, Kind

TRUE, FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
SCHEMES = ("data", "http", "https")
"""Of the addresses of files."""
MADE = ("path", "file", "secret")
"""Kinds of which the script gets something else than the text that was sent."""
LOCAL = "local"
"""What a script's own default for a file is: a path of its package."""
ALIKE = {"str": str, "secret": str, "bool": bool, "int": int, "float": float, "dict": dict, "list": list}


MOST_PROBLEMS = 100
"""How many wrong items of a list are told: its other items are not looked at."""


class BadValue(Exception):
    """Why an input does not take a value: the message and the type of pydantic, and the values in the message."""

    def __init__(self, message: str, kind: str, context: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.context = context
        self.place: Tuple[Any, ...] = ()
        """The input, and the numbers of the items that the value is within."""

    def described(self) -> Dict[str, Any]:
        """The problem, as the platform's answer has it."""
        problem = {"loc": ["body", "input", *self.place], "msg": str(self), "type": self.kind}
        return {**problem, "ctx": self.context} if self.context else problem


class Sent(str):
    """A text that was sent for a file or a secret, wherever it is among the inputs."""

    kind: str
    """One of MADE, or LOCAL."""


def sent(text: str, kind: str) -> Sent:
    made = Sent(text)
    made.kind = kind
    return made


def read(value: Any, kind: Kind, field: Any, place: Tuple[Any, ...], problems: List[BadValue]) -> Any:
    """A value of JSON as a plain one of a kind, of the limits in `field`. What is wrong with it is added to
    `problems`, with its place."""
    if value is None and kind.optional:
        return None
    if value is None and kind.name != "any":
        return _wrong(BadValue("none is not an allowed value", "type_error.none.not_allowed"), place, problems)
    if kind.is_list:
        return _list(value, kind.inner[0], field, place, problems)
    if kind.name == UNION:
        return _one_of(value, kind, field, place, problems)
    try:
        reader = READERS.get(kind.name)
        value = reader(value) if reader is not None else value
        if kind.choices:
            check_choices(value, kind.choices)
        check(value, field)
    except BadValue as error:
        return _wrong(error, place, problems)
    return sent(value, kind.name) if kind.name in MADE else value


def _wrong(error: BadValue, place: Tuple[Any, ...], problems: List[BadValue]) -> None:
    error.place = place
    problems.append(error)


def _list(value: Any, kind: Kind, field: Any, place: Tuple[Any, ...], problems: List[BadValue]) -> Any:
    if not isinstance(value, list):
        return _wrong(BadValue("value is not a valid list", "type_error.list"), place, problems)
    if is_right(value, kind) and allows_all(field):
        return value
    items, most = [], len(problems) + MOST_PROBLEMS
    for index, each in enumerate(value):
        items.append(read(each, kind, field, (*place, index), problems))
        if len(problems) >= most:
            break
    return items


def _one_of(value: Any, kind: Kind, field: Any, place: Tuple[Any, ...], problems: List[BadValue]) -> Any:
    """The value as the first member of a union that takes it; one whose type it has is asked before the others."""
    wrong: List[List[BadValue]] = [[] for _ in kind.inner]
    nearest = min(distance(value, member) for member in kind.inner)
    # Where one has the type of the value, the value is not cast to another: as a text, say, it would have no limits.
    for index in sorted(range(len(kind.inner)), key=lambda index: distance(value, kind.inner[index])):
        result = read(value, kind.inner[index], field, place, wrong[index])
        if not wrong[index] and (nearest > 0 or distance(value, kind.inner[index]) == 0):
            return result
    for each in wrong:
        problems.extend(each)
    return None


def distance(value: Any, kind: Kind) -> int:
    """How far a value is from a kind: 0 has its type, 1 is a whole number for one with a fraction, 2 is to be cast."""
    if kind.is_file:
        return 0 if isinstance(value, str) and is_address(value) else 2
    if kind.name == "float" and type(value) is int:
        return 1
    return 0 if type(value) is ALIKE.get(kind.name) else 2


def is_address(text: str) -> bool:
    return text.partition(":")[0] in SCHEMES and ":" in text


def default_of(value: Any, kind: Kind) -> Any:
    """A default of the script, where its kind makes something else of texts."""
    if isinstance(value, list) and kind.is_list:
        return [default_of(each, kind.inner[0]) for each in value] if kind.inner[0].name in (*MADE, LIST) else value
    if type(value) is not str or kind.name not in MADE:
        return value
    return sent(value, LOCAL if kind.is_file and not is_address(value) else kind.name)


# Plain kinds


def _text(value: Any) -> str:
    if isinstance(value, (str, int, float)):
        return str(value)
    raise BadValue("str type expected", "type_error.str")


def _address(value: Any) -> str:
    text = _text(value)
    if not is_address(text):
        scheme = text.partition(":")[0] if ":" in text else ""
        message = "'%s' is not a valid URL scheme. 'data', 'http', or 'https' is supported." % scheme[:20]
        raise BadValue(message, "value_error")
    return text


def _whole(value: Any) -> int:
    try:
        if isinstance(value, (int, float, str)):
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
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    text = value.lower() if isinstance(value, str) else ""
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
           "path": _address, "file": _address}  # fmt: skip


# Limits

UNLIMITED = (None, None, None, None)
EXACT = {"str": {str}, "int": {int}, "float": {float}, "bool": {bool}, "dict": {dict}}


def is_right(values: List[Any], kind: Kind) -> bool:
    """Whether `read` would surely leave all values as they are; a quick look, since lists may be long."""
    return not kind.choices and (kind.name == "any" or set(map(type, values)) == EXACT.get(kind.name))


def allows_all(field: Any) -> bool:
    """Whether `Input(...)` says nothing that `check` could refuse."""
    limits = (field.ge, field.le, field.min_length, field.max_length)
    return limits == UNLIMITED and not field.choices and not field.regex


def check(value: Any, field: Any) -> None:
    """Check a value by what `Input(...)` says of it. Raises BadValue."""
    if field.choices:
        check_choices(value, field.choices)
    for check_one in (_check_range, _check_length, _check_pattern):
        check_one(value, field)


def check_choices(value: Any, choices: Any) -> None:
    """Raise BadValue for a value that is none of them."""
    if value not in choices:
        permitted = ", ".join(map(repr, choices))
        message = "value is not a valid enumeration member; permitted: %s" % permitted
        raise BadValue(message, "type_error.enum", {"enum_values": list(choices)})


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
