"""Hints to try, and requests to try them with; as CPython 3.8 spells them."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
from typing import Any, Callable, Dict, List, NamedTuple, NewType, Optional

import pytest

from panglot_worker.bodies.codec import Limits
from panglot_worker.hints.arguments import Arguments
from panglot_worker.hints.functions import typed
from panglot_worker.hints.misfit import InvalidInput

if sys.version_info >= (3, 11):
    from typing import Annotated, Literal, NotRequired, Required, TypedDict
else:
    from typing_extensions import Annotated, Literal, NotRequired, Required, TypedDict

__all__ = ["Annotated", "Literal"]
LIMITS = Limits()
FORM = "application/x-www-form-urlencoded"


def arguments(function: Callable[..., Any], batched: bool = False) -> Arguments:
    found = typed(function, function.__name__, batched)
    assert found is not None
    return found.arguments


def given(function: Callable[..., Any], value: Any, query: bytes = b"", batched: bool = False) -> Dict[str, Any]:
    """What a JSON body gives."""
    body = json.dumps(value).encode()
    return arguments(function, batched).of_request("application/json", body, query, LIMITS)


def formed(function: Callable[..., Any], body: bytes, query: bytes = b"", kind: str = FORM) -> Dict[str, Any]:
    return arguments(function).of_request(kind, body, query, LIMITS)


def wrong(call: Callable[[], Any]) -> Dict[str, str]:
    """The fields that are refused, with what is said about each."""
    with pytest.raises(InvalidInput) as raised:
        call()
    assert raised.value.status == 422
    assert all(sorted(field) == ["message", "path"] for field in raised.value.fields)
    return {field["path"]: field["message"] for field in raised.value.fields}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Corner(enum.Enum):
    TOP_LEFT = (0, 0)
    BOTTOM_RIGHT = (1, 1)


@dataclasses.dataclass
class Box:
    x: int
    y: int = 0
    label: Optional[str] = None


@dataclasses.dataclass
class Node:
    name: str
    children: List["Node"] = dataclasses.field(default_factory=list)
    parent: "Optional[Node]" = None


@dataclasses.dataclass
class Span:
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end comes before start")


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    top: Required[int]
    order: Literal["score", "name"]


class Query(TypedDict):
    text: str
    options: NotRequired[Options]


UserId = NewType("UserId", int)


def one(hint: Any) -> Arguments:
    def function(value: Any, other: int = 0) -> None: ...

    function.__annotations__["value"] = hint
    return arguments(function)


def read(hint: Any, value: Any) -> Any:
    return one(hint).of_request("application/json", json.dumps({"value": value}).encode(), b"", LIMITS)["value"]


def refused(hint: Any, value: Any) -> Dict[str, str]:
    said = wrong(lambda: read(hint, value))
    return {path.replace("value", "", 1): message for path, message in said.items()}


def text(hint: Any, value: str) -> Any:
    from urllib.parse import quote

    return one(hint).of_request(FORM, b"value=" + quote(value).encode(), b"", LIMITS)["value"]
