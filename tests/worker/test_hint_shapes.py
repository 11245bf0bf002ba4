"""Random hints and random requests: what a script gets is what its hints say, or the request is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Dict, List, Optional, Set, Tuple, Union

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panglot_worker.bodies.codec import Limits
from panglot_worker.errors import ClientError
from panglot_worker.hints.arguments import Arguments
from panglot_worker.hints.functions import typed
from support.hints import Color, Literal, Node, Query

LIMITS = Limits()
SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

SCALARS: List[Any] = [int, float, bool, str, type(None), bytes, Color, Literal["a", 1, None], Any, Node, Query]
NAMES = ["a", "b", "text", "threshold"]
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | st.text(max_size=5) | st.sampled_from(["a", 1, "red", "aGk=", 1.0])
keys = st.sampled_from([*NAMES, "name", "children", "x"]) | st.text(max_size=3)
anything = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))


def classes(fields: Any) -> Any:
    """A dataclass of random fields, some with a default."""
    columns = [(name, hint) if index < 2 else (name, Optional[hint], None) for index, (name, hint) in enumerate(fields)]
    return dataclasses.make_dataclass("Shape", columns)


def wider(inner: Any) -> Any:
    """Hints made of other hints."""
    fields = st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=3, unique_by=lambda field: field[0])
    return st.one_of(
        inner.map(lambda hint: List[hint]),
        inner.map(lambda hint: Dict[str, hint]),
        inner.map(lambda hint: Optional[hint]),
        inner.map(lambda hint: Tuple[hint, ...]),
        st.sampled_from([int, str, bool]).map(lambda hint: Set[hint]),
        st.lists(inner, min_size=1, max_size=3).map(lambda hints: Tuple[tuple(hints)]),
        st.lists(inner, min_size=2, max_size=3).map(lambda hints: Union[tuple(hints)]),
        fields.map(classes),
    )


hints = st.recursive(st.sampled_from(SCALARS), wider, max_leaves=6)


def fits(hint: Any, value: Any) -> bool:
    """Whether a value is what its hint says, decided without the code under test."""
    if hint is Any:
        return True
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        own = [field for field in dataclasses.fields(hint) if not isinstance(field.type, str)]
        return type(value) is hint and all(fits(field.type, getattr(value, field.name)) for field in own)
    if hint is Query:
        return type(value) is dict and type(value.get("text")) is str
    if isinstance(hint, type):
        return type(value) is hint and not (hint is float and not math.isfinite(value))
    origin, arguments = hint.__origin__, hint.__args__
    if origin is Union:
        return any(fits(argument, value) for argument in arguments)
    if origin is dict:
        return type(value) is dict and all(fits(arguments[1], item) for item in value.values())
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return type(value) is tuple and all(fits(arguments[0], item) for item in value)
    if origin is tuple:
        return type(value) is tuple and len(value) == len(arguments) and all(map(fits, arguments, value))
    if origin in (list, set):
        return type(value) is origin and all(fits(arguments[0], item) for item in value)
    return any(type(value) is type(choice) and value == choice for choice in arguments)


def taking(hint: Any) -> Arguments:
    def function(value: Any, other: int = 0) -> None: ...

    function.__annotations__["value"] = hint
    made = typed(function, "function")
    if made is None:
        function.__annotations__["other"] = int
        function.__annotations__["value"] = Any
        made = typed(function, "function")
    assert made is not None
    return made.arguments


@SETTINGS
@given(hints, st.lists(anything, min_size=1, max_size=5))
def test_what_a_script_gets_is_what_its_hint_says(hint: Any, values: List[Any]) -> None:
    arguments = taking(hint)
    for value in values:
        try:
            body = json.dumps({"value": value}).encode()
            result = arguments.of_request("application/json", body, b"", LIMITS)["value"]
        except ClientError as error:
            assert 400 <= error.status <= 422
            assert str(error)
        else:
            assert fits(hint, result), (hint, value, result)


@SETTINGS
@given(hints, st.text(max_size=20) | st.lists(anything, max_size=3).map(json.dumps))
def test_what_a_form_gives_is_what_its_hint_says(hint: Any, text: str) -> None:
    from urllib.parse import quote

    body = ("value=" + quote(text.encode("utf-8", "replace"))).encode()
    try:
        result = taking(hint).of_request("application/x-www-form-urlencoded", body, b"", LIMITS)["value"]
    except ClientError as error:
        assert 400 <= error.status <= 422
    else:
        assert fits(hint, result), (hint, text, result)


@SETTINGS
@given(hints)
def test_every_hint_has_a_schema_and_an_example_that_fits(hint: Any) -> None:
    arguments = taking(hint)
    json.dumps(arguments.schema())
    assert fits(hint, arguments.of_value(arguments.example())["value"])


@SETTINGS
@given(anything)
def test_whatever_is_sent_is_taken_or_refused(value: Any) -> None:
    def function(node: Node, query: Query, size: float = 1.0) -> None: ...

    made = typed(function, "function")
    assert made is not None
    try:
        made.arguments.of_request("application/json", json.dumps(value).encode(), b"size=2", LIMITS)
    except ClientError as error:
        assert 400 <= error.status <= 422
