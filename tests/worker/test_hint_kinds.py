"""Every kind of hint: what fits, what does not, and what is said then."""

from __future__ import annotations

import dataclasses
import datetime
import re
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

import pytest

from panglot_worker.bodies.codec import File
from panglot_worker.errors import ClientError
from support.hints import (
    Annotated,
    Box,
    Color,
    Corner,
    Level,
    Literal,
    Node,
    Options,
    Point,
    Query,
    Span,
    UserId,
    formed,
    one,
    read,
    refused,
    text,
    wrong,
)

# JSON


NOON = datetime.datetime(2024, 5, 1, 12, 30, tzinfo=datetime.timezone.utc)
FIT: List[Tuple[Any, Any, Any]] = [
    (int, 3, 3), (int, 3.0, 3), (int, 2**63, 2**63), (float, 3, 3.0), (float, 1e300, 1e300), (bool, False, False),
    (str, "猫", "猫"), (None, None, None), (Any, {"a": [1]}, {"a": [1]}), (object, 1, 1),
    (list, [1, "a"], [1, "a"]), (List[int], [1, 2.0], [1, 2]), (List, [1], [1]), (Sequence[str], ["a"], ["a"]),
    (Set[int], [1, 1, 2], {1, 2}), (dict, {"a": 1}, {"a": 1}), (Dict[str, float], {"a": 1}, {"a": 1.0}),
    (Dict[int, str], {"1": "a"}, {1: "a"}), (Mapping[str, bool], {"a": True}, {"a": True}),
    (tuple, [1, "a"], (1, "a")), (Tuple[int, str], [1, "a"], (1, "a")), (Tuple[int, ...], [1, 2], (1, 2)),
    (Tuple[()], [], ()), (Optional[int], None, None), (Optional[int], 1, 1), (Union[int, str], "1", "1"),
    (Union[float, int], 1, 1), (Union[int, List[int]], [1], [1]), (Union[Box, Span], {"start": 1, "end": 2}, Span(1, 2)),
    (Literal["a", 1, None], 1, 1), (Literal["a", 1, None], None, None), (Literal[1], 1.0, 1), (Color, "red", Color.RED),
    (Level, 2, Level.HIGH), (Corner, "TOP_LEFT", Corner.TOP_LEFT), (Literal[Color.RED], "red", Color.RED),
    (Box, {"x": 1}, Box(1)), (Point, {"x": 1}, Point(1.0, 0.0)), (Span, {"start": 1, "end": 2}, Span(1, 2)),
    (Query, {"text": "a"}, {"text": "a"}), (Options, {"top": 1}, {"top": 1}), (UserId, 5, 5),
    (datetime.datetime, "2024-05-01T12:30:00Z", NOON), (datetime.datetime, "2024-05-01 14:30:00.000+0200", NOON),
    (datetime.datetime, "2024-05-01T12:30", NOON.replace(tzinfo=None)), (datetime.date, "2024-05-01", NOON.date()),
    (datetime.time, "12:30:01.5", datetime.time(12, 30, 1, 500000)),
    (uuid.UUID, "123E4567-e89b-12d3-a456-426614174000", uuid.UUID("123e4567-e89b-12d3-a456-426614174000")),
    (bytes, "aGk=", b"hi"), (bytes, "data:text/plain;charset=utf-8;base64,aGk=", b"hi"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value", "expected"), FIT, ids=[str(row[:2]) for row in FIT])
def test_what_fits_becomes_what_the_hint_says(hint: Any, value: Any, expected: Any) -> None:
    result = read(hint, value)
    assert result == expected
    assert type(result) is type(expected)


MISFITS: List[Tuple[Any, Any, Dict[str, str]]] = [
    (int, True, {"": "must be an integer, not true"}), (int, 1.5, {"": "must be an integer, not 1.5"}),
    (int, 1e300, {"": "must be an integer, not 1e+300"}), (int, "1", {"": 'must be an integer, not "1"'}),
    (float, False, {"": "must be a number, not false"}), (float, None, {"": "must be a number, not null"}),
    (bool, 0, {"": "must be true or false, not 0"}), (str, 1, {"": "must be a string, not 1"}),
    (None, 0, {"": "must be null, not 0"}), (List[int], {}, {"": "must be a list, not an object"}),
    (List[List[int]], [[1], ["a", 2, None]], {"[1][0]": 'must be an integer, not "a"', "[1][2]": "must be an integer, not null"}),
    (Dict[str, int], {"a b": "x"}, {'["a b"]': 'must be an integer, not "x"'}),
    (Dict[int, str], {"x": "a"}, {".x": 'must be an integer, not "x"'}),
    (Tuple[int, str], [1], {"": "must be a list of 2 values, not of 1"}),
    (Tuple[int, str], ["a", 1], {"[0]": 'must be an integer, not "a"', "[1]": "must be a string, not 1"}),
    (Optional[int], "x", {"": 'must be an integer or null, not "x"'}),
    (Union[int, str], None, {"": "must be an integer or a string, not null"}),
    (Union[int, Box], {"x": "a"}, {".x": 'must be an integer, not "a"'}),
    (Union[Box, Span], {"x": "a"}, {".x": 'must be an integer, not "a"'}),
    (Union[Box, Node], {"z": "a"}, {"": "fits none of the 2 objects it may be"}),
    (Literal["a", 1], True, {"": 'must be one of "a", 1, not true'}), (Color, ["red"], {"": 'must be one of "red", "blue", not a list'}),
    (Corner, [0, 0], {"": 'must be one of "TOP_LEFT", "BOTTOM_RIGHT", not a list'}),
    (Box, {"y": "a", "z": 0}, {".x": "is missing; it must be an integer", ".y": 'must be an integer, not "a"',
                              ".z": "is not known; there are only: x, y, label"}),
    (Span, {"start": 2, "end": 1}, {"": "is refused: end comes before start"}),
    (Query, {"text": "a", "options": {"order": "x"}}, {".options.top": "is missing; it must be an integer",
                                                       ".options.order": 'must be one of "score", "name", not "x"'}),
    (datetime.datetime, "2024-02-30T00:00", {"": 'must be a date and time such as 2024-05-01T12:30:00Z (day is out of range '
                                                 'for month), not "2024-02-30T00:00"'}),
    (datetime.date, 5, {"": "must be a date such as 2024-05-01, not 5"}),
    (uuid.UUID, "{123}", {"": 'must be a UUID, not "{123}"'}),
    (bytes, "a b", {"": "must be a file (in JSON: base64, or a data: URI); this text is not base64"}),
    (bytes, "data:image/png,x", {"": "is a data: URI without ;base64"}),
    (File, 5, {"": "must be a file (in JSON: base64, or a data: URI), not 5"}),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value", "said"), MISFITS, ids=[str(row[:2]) for row in MISFITS])
def test_what_does_not_fit_is_explained(hint: Any, value: Any, said: Dict[str, str]) -> None:
    found = refused(hint, value)
    # CPython 3.14 words it anew.
    assert {path: message.replace("day 30 must be in range 1..29 for month 2 in year 2024", "day is out of range for month")
            for path, message in found.items()} == said  # fmt: skip


TEXTS: List[Tuple[Any, str, Any]] = [
    (int, " 5 ", 5), (int, "-5", -5), (float, "5", 5.0), (float, "1e3", 1000.0), (bool, "on", True), (bool, "False", False),
    (bool, "0", False), (str, " a ", " a "), (Optional[int], "", None), (Optional[int], "null", None), (Optional[str], "", ""),
    (Optional[str], "null", "null"), (Union[int, str], "5", 5), (Union[int, str], "x", "x"), (Union[int, None, float], "", None),
    (Literal["a", 1, True], "1", 1), (Literal["a", 1, True], "true", True), (Color, "red", Color.RED), (Level, "2", Level.HIGH),
    (List[int], "5", [5]), (List[int], "[5, 6]", [5, 6]), (Dict[str, int], '{"a": 1}', {"a": 1}), (Box, '{"x": 1}', Box(1)),
    (Tuple[int, str], '[1, "a"]', (1, "a")), (datetime.date, "2024-05-01 ", datetime.date(2024, 5, 1)), (bytes, "aGk=", b"hi"),
    (Any, "5", "5"), (List[List[int]], "[[1],[2]]", [[1], [2]]), (Set[str], "a", {"a"}),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value", "expected"), TEXTS, ids=[str(row[:2]) for row in TEXTS])
def test_a_text_of_a_form_becomes_what_the_hint_says(hint: Any, value: str, expected: Any) -> None:
    result = text(hint, value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value"),
    [(int, "1_000"), (int, "1.0"), (int, "٣"), (int, "9" * 30), (float, "nan"), (float, "inf"), (float, "1e999"),
     (float, "0x10"), (bool, "2"), (bool, ""), (List[int], "a"), (Box, "x"), (Box, "[1]"), (Dict[str, int], '{"a": NaN}'),
     (type(None), "x"), (Tuple[int, int], "[" * 100), (List[List[int]], "5"), (List[Set[int]], "[5]")],
)  # fmt: skip
def test_a_text_that_spells_nothing_is_refused(hint: Any, value: str) -> None:
    assert [path.partition("[")[0] for path in wrong(lambda: text(hint, value))] == ["value"]


def test_a_list_inside_of_a_list_needs_its_brackets() -> None:
    def function(rows: List[Optional[List[int]]]) -> None: ...

    assert formed(function, b"rows=[1,2]&rows=[3]&rows=null") == {"rows": [[1, 2], [3], None]}
    assert wrong(lambda: formed(function, b"rows=5&rows=[6]")) == {"rows[0]": "must be a list or null, not 5"}


def test_the_files_of_a_form_reach_hints_of_files() -> None:
    def function(images: List[File], raw: bytes, box: Box, title: str = "") -> None: ...

    boundary = b"--b\r\nContent-Disposition: form-data; "
    parts = [
        b'name="images"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nA',
        b'name="images"; filename="b.png"\r\nContent-Type: image/png\r\n\r\nB',
        b'name="raw"; filename="raw"\r\n\r\nR',
        b'name="box"; filename="box.json"\r\nContent-Type: application/json\r\n\r\n{"x": 1}',
    ]
    kind = "multipart/form-data; boundary=b"
    result = formed(function, b"".join(boundary + part + b"\r\n" for part in parts) + b"--b--\r\n", kind=kind)
    assert [(file.name, file.bytes) for file in result["images"]] == [("a.png", b"A"), ("b.png", b"B")]
    assert (result["raw"], result["box"]) == (b"R", Box(1))
    parts.append(b'name="title"; filename="t"\r\n\r\nT')
    said = wrong(
        lambda: formed(function, b"".join(boundary + part + b"\r\n" for part in parts) + b"--b--\r\n", kind=kind)
    )
    assert said == {"title": "must be a string, as text, not a file"}


# Classes that contain themselves, and alternatives


def chain(depth: int, leaf: Any) -> Any:
    return {"name": leaf if depth == 0 else "n", "children": [chain(depth - 1, leaf)] if depth else []}


def test_classes_may_contain_themselves() -> None:
    result = read(Node, chain(20, "leaf"))
    for _ in range(20):
        (result,) = result.children
    assert result == Node("leaf")
    assert refused(Node, chain(20, 5)) == {".children[0]" * 20 + ".name": "must be a string, not 5"}


def test_depth_is_bounded() -> None:
    with pytest.raises(ClientError, match="nested deeper|nested too deep"):
        read(Node, chain(400, "leaf"))


@dataclasses.dataclass
class Left:
    child: "Union[Left, Right, None]"
    tag: int


@dataclasses.dataclass
class Right:
    child: "Union[Left, Right, None]"
    tag: int


def test_alternatives_inside_of_alternatives_cost_a_bounded_time() -> None:
    """Where each level fits two classes but for its last leaf, there are 2**28 ways to fail."""
    value: Any = {"child": None, "tag": "x"}
    for _ in range(28):
        value = {"child": value, "tag": 1}
    with pytest.raises(ClientError) as raised:
        read(Left, value)
    assert raised.value.status == 422


# Annotated


class Bound:
    """As annotated-types has them, by attribute."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


BOUNDS: List[Tuple[Any, Any, str]] = [
    (Annotated[int, Bound(ge=0)], -1, "must be at least 0, not -1"), (Annotated[float, Bound(gt=0)], 0, "must be more than 0, not 0.0"),
    (Annotated[int, Bound(ge=0, le=9)], 10, "must be at most 9, not 10"), (Annotated[int, Bound(lt=9)], 9, "must be less than 9, not 9"),
    (Annotated[int, Bound(multiple_of=5)], 12, "must be a multiple of 5, not 12"),
    (Annotated[float, Bound(multiple_of=0.1)], 0.25, "must be a multiple of 0.1, not 0.25"),
    (Annotated[str, Bound(min_length=1)], "", "must have at least 1 character, not 0"),
    (Annotated[List[int], Bound(min_length=1, max_length=2)], [1, 2, 3], "must have at most 2 values, not 3"),
    (Annotated[bytes, Bound(max_length=1)], "aGk=", "must have at most 1 byte, not 2"),
    (Annotated[str, re.compile("^[a-z]+$")], "A", 'must match the pattern "^[a-z]+$"'),
    (Annotated[str, Bound(pattern="^[a-z]+$")], "A", 'must match the pattern "^[a-z]+$"'),
    (Annotated[Optional[int], Bound(ge=0)], -1, "must be at least 0, not -1"),
    (Annotated[datetime.date, Bound(ge=datetime.date(2024, 1, 1))], "2023-12-31", "must be at least 2024-01-01, not 2023-12-31"),
    (Annotated[datetime.datetime, Bound(ge=NOON)], "2025-01-01T00:00", "cannot be compared with 2024-05-01 12:30:00+00:00"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value", "said"), BOUNDS, ids=[row[2] for row in BOUNDS])
def test_bounds_are_kept(hint: Any, value: Any, said: str) -> None:
    assert refused(hint, value) == {"": said}
    assert (
        set(one(hint).schema()["properties"]["value"]) >= {"type"}
        or "anyOf" in one(hint).schema()["properties"]["value"]
    )


def test_what_lies_within_its_bounds_passes() -> None:
    assert read(Annotated[Optional[int], Bound(ge=0)], None) is None
    assert read(Annotated[float, Bound(multiple_of=0.1)], 0.3) == 0.3
    assert read(List[Annotated[int, Bound(ge=0)]], [0, 1]) == [0, 1]
    assert refused(List[Annotated[int, Bound(ge=0)]], [0, -1]) == {"[1]": "must be at least 0, not -1"}
    assert text(Annotated[int, Bound(ge=0)], "5") == 5
    assert read(Annotated[int, "a note", object()], 5) == 5


def test_the_example_fits_its_own_hints() -> None:
    hints = [hint for hint, _, _ in (*FIT, *BOUNDS) if "re.compile" not in str(hint) and "pattern" not in str(hint)]
    for hint in hints:
        found = one(hint)
        found.of_value(found.example())
