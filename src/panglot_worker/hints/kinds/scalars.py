"""The types of JSON that hold nothing else: bool, int, float, str, None. And Any, which takes all.

A bool is no number. An int takes 3 and 3.0, which is the same number in JSON; a float takes 3 and becomes 3.0.
"""

from __future__ import annotations

import math
import re
from typing import Any, Tuple

from panglot_worker.hints.kind import Kind, from_text
from panglot_worker.hints.misfit import Misfit, must_be

INTEGER, NUMBER, BOOLEAN, TEXT, NULL = "an integer", "a number", "true or false", "a string", "null"
EXACT_FLOATS = 2.0**53
"""Larger floats are not exact: the sender may have meant another integer."""
SMALLEST, LARGEST = -(2**63), 2**64 - 1

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,9})?", re.ASCII)
TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def to_int(value: Any) -> int:
    kind = type(value)
    if kind is int:
        return value  # type: ignore[no-any-return]
    if kind is float and value.is_integer() and -EXACT_FLOATS <= value <= EXACT_FLOATS:
        return int(value)
    raise must_be(INTEGER, value)


def to_float(value: Any) -> float:
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return float(value)
    raise must_be(NUMBER, value)


def to_bool(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise must_be(BOOLEAN, value)


def to_str(value: Any) -> str:
    if type(value) is str:
        return value
    raise must_be(TEXT, value)


def to_none(value: Any) -> None:
    if value is not None:
        raise must_be(NULL, value)


def as_it_is(value: Any) -> Any:
    return value


def int_of(text: str) -> int:
    """The integer that a form field spells. Raises Misfit."""
    stripped = text.strip()
    if _INTEGER.fullmatch(stripped):
        number = int(stripped)
        if SMALLEST <= number <= LARGEST:
            return number
        raise Misfit("must be an integer of at most 64 bits")
    raise must_be(INTEGER, text)


def float_of(text: str) -> float:
    """The number that a form field spells; NaN and infinity are none, as in JSON. Raises Misfit."""
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        number = float(stripped)
        if math.isfinite(number):
            return number
        raise Misfit("is larger than a double can hold")
    raise must_be(NUMBER, text)


def bool_of(text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise must_be(BOOLEAN, text)


def none_of(text: str) -> None:
    if text.strip() not in ("", "null"):
        raise must_be("empty", text)


SCALARS: Tuple[Tuple[Any, Kind], ...] = (
    (bool, Kind(BOOLEAN, to_bool, from_text(BOOLEAN, bool_of), {"type": "boolean"}, True, bool)),
    (int, Kind(INTEGER, to_int, from_text(INTEGER, int_of), {"type": "integer"}, 1, int)),
    (float, Kind(NUMBER, to_float, from_text(NUMBER, float_of), {"type": "number"}, 0.5, float)),
    (str, Kind(TEXT, to_str, from_text(TEXT, to_str), {"type": "string"}, "text", str)),
    (type(None), Kind(NULL, to_none, from_text(NULL, none_of), {"type": "null"}, None, type(None))),
)
ANYTHING = Kind("anything", as_it_is, as_it_is, {}, None, is_object=True)
