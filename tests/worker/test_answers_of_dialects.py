"""What `Dialect` offers every dialect: limits, NaN, JSON answers with warnings, answers in parts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panglot_worker.bodies.standard_json import StandardJson
from panglot_worker.bodies.streams import EVENTS, LINES
from panglot_worker.dialects.base import Dialect, Package, Request
from panglot_worker.errors import ClientError, EncodeError
from panglot_worker.line import wire


class Small(Dialect):
    """A dialect with no rule of its own."""


def small(**settings: Any) -> Small:
    return Small(Package("p", "/tmp", "p.py", "small", [], {}, settings))


def request(body: bytes = b"{}", content_type: bytes = b"application/json", accept: bytes = b"") -> Request:
    head = wire.Head(b"1", b"/", content_type, accept)
    return Request(wire.Item(1, 1.0, head.pack(), body))


def test_limits_and_nan_come_from_the_settings() -> None:
    dialect = small(limits={"json_bytes": 4, "output_bytes": 9}, nan="error")
    with pytest.raises(ClientError):
        dialect.read(request(b'{"a": 1}'))
    with pytest.raises(EncodeError):
        dialect.json_answer("x" * 10)
    with pytest.raises(EncodeError):
        dialect.json_answer(float("nan"))


def test_nan_is_null_with_a_warning_by_default() -> None:
    answer = small().json_answer([float("nan")], 201, ["x-own: 1"])
    assert (answer.body, answer.status) == (b"[null]", 201)
    assert list(answer.headers) == ["x-own: 1", "x-panglot-warning: nan: 1 values replaced by null"]


def test_an_answer_without_warning_has_no_header() -> None:
    assert small().answer({"a": 1}, request()) == ("application/json", b'{"a":1}', 200, (), 0)


def test_bytes_are_answered_as_they_are() -> None:
    assert small().answer(b"abc", request()).content_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("accept", "content_type", "part"),
    [
        (b"", EVENTS, b'data: {"a":1}\n\n'),
        (b"text/event-stream", EVENTS, b'data: {"a":1}\n\n'),
        (b"application/x-ndjson", LINES, b'{"a":1}\n'),
        (b"application/jsonl", LINES, b'{"a":1}\n'),
    ],
)
def test_parts_are_events_or_lines_by_accept(accept: bytes, content_type: str, part: bytes) -> None:
    dialect = small()
    assert dialect.stream_type(request(accept=accept)) == content_type
    assert dialect.encode_part({"a": 1}, content_type) == part


def test_functions_of_both_kinds_are_settled() -> None:
    async def later() -> int:
        return 2

    dialect = small()
    assert (dialect.settled(1), dialect.settled(later())) == (1, 2)
    dialect.event_loop().close()


def test_the_json_of_the_standard_library_has_its_blanks_and_indents() -> None:
    limits = small().limits
    assert StandardJson(limits, "null").encode({"a": [1, "é"]}) == (b'{"a": [1, "\\u00e9"]}', "")
    assert StandardJson(limits, "null", indent=2).encode({"a": 1})[0] == json.dumps({"a": 1}, indent=2).encode()
    assert StandardJson(limits, "platform").encode([float("nan")]) == (b"[NaN]", "")


NUMBERS = st.one_of(st.floats(), st.integers(), st.floats(-1, 1), st.floats(-1e17, 1e17), st.booleans())


@given(st.lists(NUMBERS, min_size=8, max_size=12), st.sampled_from(["list", "nested", "dict"]))
def test_many_numbers_are_written_as_the_json_module_writes_them(numbers: list[Any], form: str) -> None:
    """They take a quicker way, which must not show."""
    value: Any = {"list": numbers, "nested": [numbers, numbers], "dict": {"a": numbers, "b": [numbers]}}[form]
    assert StandardJson(small().limits, "platform").encode(value) == (json.dumps(value).encode(), "")
