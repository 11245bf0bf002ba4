"""Arguments by their hints: every way a request may hold them, and what is said where it does not."""

from __future__ import annotations

import re
import sys
from typing import Any, Callable, Dict, List, Optional

import pytest

from panglot_worker.bodies.codec import File
from panglot_worker.errors import ClientError, ScriptError
from panglot_worker.hints.functions import typed
from panglot_worker.hints.misfit import InvalidInput
from support.hints import Annotated, Box, Color, Node, arguments, formed, given, one, wrong


def several(text: str, threshold: float = 0.5, labels: List[str] = (), color: Color = Color.RED) -> None: ...  # type: ignore[assignment]


# By name, from JSON, forms and the query


def test_arguments_are_taken_by_name() -> None:
    assert given(several, {"text": "a"}) == {"text": "a"}
    everything = {"text": "a", "threshold": 1, "labels": ["x"], "color": "blue"}
    assert given(several, everything) == {"text": "a", "threshold": 1.0, "labels": ["x"], "color": Color.BLUE}


def test_a_form_is_converted_by_the_hints() -> None:
    result = formed(several, b"text=5&threshold=.25&labels=a&labels=b&color=red")
    assert result == {"text": "5", "threshold": 0.25, "labels": ["a", "b"], "color": Color.RED}
    assert formed(several, b'text=5&labels=["a","b"]')["labels"] == ["a", "b"]
    assert formed(several, b"text=5&labels=[a")["labels"] == ["[a"]
    assert formed(several, b"text=&labels=")["labels"] == [""]


def test_the_query_gives_what_the_body_does_not() -> None:
    assert given(several, {"text": "a"}, b"threshold=0.25&labels=x") == {
        "text": "a",
        "threshold": 0.25,
        "labels": ["x"],
    }
    assert formed(several, b"", b"text=1&color=blue") == {"text": "1", "color": Color.BLUE}
    assert formed(several, b"text=1", b"threshold=2") == {"text": "1", "threshold": 2.0}


def test_a_field_in_both_is_refused_with_all_else_that_is_wrong() -> None:
    said = wrong(lambda: given(several, {"text": "a", "labels": 1}, b"text=b&threshold=x"))
    assert said == {
        "text": "is given twice, in the body and in the query",
        "labels": "must be a list, not 1",
        "threshold": 'must be a number, not "x"',
    }


def test_every_wrong_field_is_named() -> None:
    said = wrong(lambda: given(several, {"treshold": 1, "labels": ["a", 1, None], "color": "green"}))
    assert said == {
        "treshold": "is not known; did you mean threshold?",
        "labels[1]": "must be a string, not 1",
        "labels[2]": "must be a string, not null",
        "color": 'must be one of "red", "blue", not "green"',
        "text": "is missing; it must be a string",
    }


def test_unknown_fields_of_forms_and_queries_are_refused() -> None:
    assert wrong(lambda: formed(several, b"text=a&colour=red")) == {"colour": "is not known; did you mean color?"}
    assert "zzz" in wrong(lambda: given(several, {"text": "a"}, b"zzz=1"))


def test_a_field_sent_twice_is_refused_where_one_is_wanted() -> None:
    assert wrong(lambda: formed(several, b"text=a&text=b")) == {"text": "is given 2 times; it takes one value"}


def test_at_most_fifty_wrong_fields_are_told() -> None:
    with pytest.raises(InvalidInput) as raised:
        given(several, {"text": "a", "labels": [1] * 10_000})
    assert len(raised.value.fields) == 50
    assert str(raised.value) == "labels[0] must be a string, not 1 (and at least 49 more, see fields)"


def test_what_a_stranger_wrote_is_cut() -> None:
    said = wrong(lambda: given(several, {"text": "a", "threshold": "x" * 1000, "y" * 1000: 1}))
    assert all(len(path) + len(message) < 250 for path, message in said.items())


def test_further_fields_go_to_a_function_that_takes_them() -> None:
    def function(text: str, **options: int) -> None: ...

    assert given(function, {"text": "a", "top": 3}) == {"text": "a", "top": 3}
    assert formed(function, b"text=a", b"top=3") == {"text": "a", "top": 3}
    assert wrong(lambda: given(function, {"text": "a", "top": "x"})) == {"top": 'must be an integer, not "x"'}


# One parameter


def test_without_hints_a_function_takes_the_body() -> None:
    assert typed(lambda request: None, "predict") is None
    assert typed(lambda request, verbose=False: None, "predict") is None
    assert typed(lambda *items: None, "predict") is None

    def anything(request: Any) -> None: ...

    assert typed(anything, "predict") is None
    assert typed(anything, "predict_batch", batched=True) is None


def test_parameters_that_may_be_anything_are_taken_by_name_where_there_are_several() -> None:
    def function(a: Any, b: Any) -> None: ...

    def mixed(a, b: int = 0) -> None: ...  # type: ignore[no-untyped-def]

    assert given(function, {"a": 1, "b": [2]}) == {"a": 1, "b": [2]}
    assert given(mixed, {"a": [1]}) == {"a": [1]}
    assert typed(lambda a, b: None, "predict") is None


def test_one_parameter_that_takes_objects_takes_the_body() -> None:
    def function(box: Box) -> None: ...

    assert given(function, {"x": 1, "y": 2}) == {"box": Box(1, 2)}
    assert formed(function, b"x=1&label=5") == {"box": Box(1, 0, "5")}
    assert formed(function, b"x=1", b"y=2") == {"box": Box(1, 2)}
    assert wrong(lambda: given(function, {"x": "1", "z": 1})).keys() == {"x", "z"}
    assert wrong(lambda: given(function, [1])) == {"": "must be an object, not a list"}
    assert wrong(lambda: formed(function, b"")) == {"x": "is missing; it must be an integer"}


def test_one_parameter_that_takes_something_else_may_be_the_body() -> None:
    def function(values: List[float]) -> None: ...

    assert given(function, [1, 2.5]) == given(function, {"values": [1, 2.5]}) == {"values": [1.0, 2.5]}
    assert wrong(lambda: given(function, [1, "x"])) == {"values[1]": 'must be a number, not "x"'}


def test_a_text_may_be_the_body() -> None:
    def function(text: str) -> None: ...

    assert formed(function, "猫".encode(), kind="text/plain") == {"text": "猫"}
    with pytest.raises(ClientError, match="not UTF-8"):
        formed(function, b"\xff", kind="text/plain")


def test_a_body_that_is_a_file_goes_to_the_parameter_that_takes_one() -> None:
    def function(image: File, threshold: float = 0.5, mask: Optional[bytes] = None) -> None: ...

    result = formed(function, b"\x89PNG", b"threshold=0.25", kind="image/png")
    assert (result["image"].bytes, result["image"].type, result["threshold"]) == (b"\x89PNG", "image/png", 0.25)
    with pytest.raises(ClientError, match="send text, threshold, labels, color as JSON or in a form") as raised:
        formed(several, b"\x89PNG", kind="image/png")
    assert raised.value.status == 415


def test_an_empty_body_is_enough_where_nothing_is_needed() -> None:
    def function(threshold: float = 0.5) -> None: ...

    def whole(box: Optional[Box] = None) -> None: ...

    assert formed(function, b"") == formed(whole, b"") == {}
    assert given(whole, None) == {"box": None}


# Hints that make no sense


def fails(function: Callable[..., Any], batched: bool = False) -> ScriptError:
    with pytest.raises(ScriptError) as raised:
        typed(function, "predict", batched)
    assert raised.value.file == __file__
    assert raised.value.line > 0
    assert raised.value.fix
    return raised.value


def test_a_hint_that_cannot_be_evaluated_is_an_error_of_the_script() -> None:
    def unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821

    def nested(x: "List[Nowhere]") -> None: ...  # type: ignore[name-defined] # noqa: F821

    def broken(x: "List[") -> None: ...  # type: ignore[syntax] # noqa: F722

    for function in (unknown, nested):
        error = fails(function)
        assert "predict: the hint of x cannot be evaluated: NameError: name 'Nowhere' is not defined" in error.problem
        assert "TYPE_CHECKING" in error.fix
    assert "SyntaxError" in fails(broken).problem


def test_a_hint_of_a_result_is_not_looked_at() -> None:
    def function(x: int) -> "Nowhere": ...  # type: ignore[name-defined] # noqa: F821

    assert given(function, 5) == {"x": 5}


def test_a_hint_that_no_request_can_hold_is_an_error_of_the_script() -> None:
    def callback(x: Callable[[], None]) -> None: ...

    def other(x: List[re.Pattern]) -> None: ...  # type: ignore[type-arg]

    assert "the hint of x is not a type that a request can have" in fails(callback).problem
    assert "an item of x" in fails(other).problem


@pytest.mark.skipif(sys.version_info >= (3, 9), reason="there list[str] is a hint")
def test_the_spellings_of_later_versions_are_explained() -> None:
    def function(x: "list[str]") -> None: ...

    assert "List[str]" in fails(function).fix


@pytest.mark.skipif(sys.version_info < (3, 10), reason="there these are no hints")
def test_the_spellings_of_later_versions() -> None:
    def function(x: "list[str] | None", y: "dict[str, int | float]", z: "tuple[int, ...]" = ()) -> None: ...

    assert given(function, {"x": ["a"], "y": {"a": 1.5}, "z": [1]}) == {"x": ["a"], "y": {"a": 1.5}, "z": (1,)}


def test_a_default_of_none_takes_null() -> None:
    def function(x: int = None, y: int = 0) -> None: ...  # type: ignore[assignment]

    assert given(function, {"x": None}) == {"x": None}
    assert wrong(lambda: given(function, {"y": None})) == {"y": "must be an integer, not null"}


# Batches


def test_a_batch_has_a_list_for_each_parameter() -> None:
    def predict_batch(images: List[bytes], threshold: List[float] = (0.5,)) -> List[Any]:  # type: ignore[assignment]
        return [images, threshold]

    found = typed(predict_batch, "predict_batch", batched=True)
    assert found is not None
    items = [found.arguments.of_value({"images": "aGk="}), found.arguments.of_value({"images": "", "threshold": 1})]
    assert found.calling(predict_batch)(items) == [[b"hi", b""], [0.5, 1.0]]
    assert found.arguments.schema()["required"] == ["images"]


def test_a_batch_may_be_a_list_of_objects() -> None:
    def predict_batch(boxes: List[Box]) -> List[Any]:
        return boxes

    found = typed(predict_batch, "predict_batch", batched=True)
    assert found is not None
    assert found.calling(predict_batch)([found.arguments.of_value({"x": x}) for x in (1, 2)]) == [Box(1), Box(2)]


def test_parameters_of_a_batch_must_be_lists() -> None:
    def predict_batch(threshold: float) -> None: ...

    def defaulted(threshold: List[float] = 0.5) -> None: ...  # type: ignore[assignment]

    assert fails(predict_batch, batched=True).fix == "write threshold: list[float]"
    assert "(0.5,)" in fails(defaulted, batched=True).fix


@pytest.mark.parametrize(
    ("hint", "calls"),
    [
        (File, False),
        (bytes, False),
        (Dict[str, List[Optional[float]]], False),
        (List[Box], True),
        (Optional[Color], True),
        (Annotated[int, "a number"], True),
    ],
)
def test_it_is_known_whether_reading_a_hint_calls_the_script(hint: Any, calls: bool) -> None:
    def predict(value: Any, other: int = 0) -> None: ...

    predict.__annotations__["value"] = hint
    signature = typed(predict, "predict")
    assert signature is not None
    assert signature.calls_script is calls


# Schema and example


def test_the_schema_says_what_is_taken() -> None:
    schema = arguments(several).schema()
    assert schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "threshold": {"type": "number", "default": 0.5},
            "labels": {"type": "array", "items": {"type": "string"}, "default": []},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_classes_of_a_schema_have_names() -> None:
    schema = one(List[Node]).schema()
    assert schema["properties"]["value"] == {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    assert list(schema["$defs"]) == ["Node"]
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
