"""The types of inputs and outputs that predictors of Cog are written with."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from support.server import Server, serving

FILE = "data:text/plain;base64,aGk="


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("cog_types", "--workers", "1") as running:
        yield running


def predicted(server: Server, **given: Any) -> dict[str, Any]:
    answer = server.client.post("/predictions", json={"input": {"prompt": "hi", **given}})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.document("cog.04", "cog.07")
def test_inputs_without_a_value_have_their_defaults(server: Server) -> None:
    answer = predicted(server)
    assert answer["output"]["seen"] == {
        "size": "small", "mode": "a", "level": 1, "number": 1, "options": {"k": 1}, "leaves": [1], "rows": [],
        "names": ["x"], "images": [], "anything": None, "seed": None, "key": None, "ready": "set up",
        "grid": [[1.5]], "either": "auto", "parts": ["a"], "colors": ["red"], "keys": [], "local": ["words.txt"],
        "maybe": [], "shape": {},
    }  # fmt: skip
    shown = answer["input"]
    defaults = (["x"], {"k": 1}, {"leaves": [1]})
    assert (shown["names"], shown["options"], shown["tree"]) == defaults, "what the script does to its own is not shown"
    seen = predicted(server)["output"]["seen"]
    assert (seen["names"], seen["options"], seen["leaves"]) == (["x"], {"k": 1}, [1]), "nor does the next one see it"


@pytest.mark.document("cog.04", "cog.05", "cog.06", "cog.07")
def test_every_type_comes_to_the_script_and_back(server: Server) -> None:
    given = {
        "size": "large", "mode": "b", "level": 2, "number": 2.5, "options": {"z": [1]}, "rows": [{"a": 1}, {}],
        "names": ["p", "q"], "images": [FILE, FILE], "key": "s3cret", "anything": {"x": [None]}, "seed": "7",
        "tree": {"leaves": [2]}, "grid": [[1.0, 2.5], []], "either": 3, "parts": ["b", "b"], "colors": ["blue"],
        "keys": ["k1", ""], "local": [FILE], "maybe": [1, None], "shape": {"width": 2},
        "unknown": 1,
    }  # fmt: skip
    answer = predicted(server, **given)
    del given["unknown"]
    assert answer["input"] == {**given, "prompt": "hi", "key": "**********", "keys": ["**********", ""], "seed": 7}
    del given["tree"]
    made = {"leaves": [2], "images": ["hi", "hi"], "local": [".txt"], "seed": 7, "ready": "set up"}
    seen = answer["output"]["seen"]
    seen["local"] = [name[-4:] for name in seen["local"]]
    assert seen == {**given, **made}
    drawn = "data:text/plain;base64,aGk="
    output = answer["output"]
    assert (output["file"], output["files"], output["nested"]["inner"]) == (drawn, [drawn, drawn], {"file": drawn})


@pytest.mark.document("cog.07")
def test_files_that_are_open_are_outputs_too(server: Server) -> None:
    opened = predicted(server)["output"]["nested"]["open"]
    texts = {name: base64.b64decode(url.partition(",")[2]) for name, url in opened.items()}
    assert texts == {"bytes": b"hi", "text": b"hi", "memory": b"memory", "temporary": b"temporary"}
    types = {name: url.partition(";")[0] for name, url in opened.items()}
    assert types == {**dict.fromkeys(opened, "data:text/plain"), "memory": "data:application/octet-stream"}


WRONG = {
    "another member": ({"size": "huge"}, ("size",), "permitted: 'small', 'large'"),
    "another literal": ({"mode": "c"}, ("mode",), "permitted: 'a', 'b'"),
    "another number": ({"level": 3}, ("level",), "permitted: 1, 2"),
    "too short": ({"prompt": ""}, ("prompt",), "at least 1 characters"),
    "too long": ({"prompt": "x" * 21}, ("prompt",), "at most 20 characters"),
    "another pattern": ({"prompt": "HI"}, ("prompt",), "does not match regex"),
    "no part": ({"parts": ["a", "c"]}, ("parts", 1), "permitted: 'a', 'b'"),
    "no color": ({"colors": ["green"]}, ("colors", 0), "permitted: 'red', 'blue'"),
    "no number in a row": ({"grid": [[1], [2, "x"]]}, ("grid", 1, 1), "not a valid float"),
    "no row": ({"grid": [1]}, ("grid", 0), "not a valid list"),
    "nothing in a list": ({"names": [None]}, ("names", 0), "none is not an allowed value"),
    "no dict": ({"options": 1}, ("options",), "not a valid dict"),
    "no dict in a list": ({"rows": [{}, 1]}, ("rows", 1), "not a valid dict"),
    "no text in a list": ({"names": ["x", {}]}, ("names", 1), "str type expected"),
    "no file in a list": ({"images": ["/etc/hostname"]}, ("images", 0), "not a valid URL scheme"),
}


@pytest.mark.document("cog.11")
@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_another_type_is_refused_with_the_name_of_its_input(server: Server, name: str) -> None:
    given, where, message = WRONG[name]
    answer = server.client.post("/predictions", json={"input": {"prompt": "hi", **given}})
    (problem,) = answer.json()["detail"]
    assert (answer.status_code, problem["loc"]) == (422, ["body", "input", *where])
    assert message in problem["msg"]


def test_a_list_of_wrong_items_is_refused_for_the_first_of_them(server: Server) -> None:
    answer = server.client.post("/predictions", json={"input": {"prompt": "hi", "names": [{}] * 100_000}})
    assert (answer.status_code, len(answer.json()["detail"])) == (422, 100)


@pytest.mark.document("cog.11")
def test_a_value_that_no_member_of_a_union_takes_is_refused_by_each(server: Server) -> None:
    answer = server.client.post("/predictions", json={"input": {"prompt": "hi", "either": "x", "number": []}})
    problems = [(problem["loc"][2], problem["type"]) for problem in answer.json()["detail"]]
    assert (answer.status_code, problems) == (
        422,
        [
            ("number", "type_error.integer"),
            ("number", "type_error.float"),
            ("either", "type_error.enum"),
            ("either", "type_error.integer"),
        ],
    )


@pytest.mark.document("cog.07")
def test_nothing_is_an_output_too(server: Server) -> None:
    answer = predicted(server, prompt="none")
    assert (answer["status"], answer["output"]) == ("succeeded", None)


@pytest.mark.document("cog.10")
def test_a_predictor_that_exits_is_a_failed_prediction_and_the_next_is_served(server: Server) -> None:
    answer = predicted(server, prompt="exit")
    assert (answer["status"], answer["error"]) == ("failed", "the script called sys.exit(3)")
    assert predicted(server)["status"] == "succeeded"


@pytest.mark.document("cog.16")
def test_the_document_names_what_each_input_may_be(server: Server) -> None:
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    enums = {name: schemas[name]["enum"] for name in ("size", "mode", "level")}
    inputs = schemas["Input"]["properties"]
    assert inputs["number"]["anyOf"] == [{"type": "integer"}, {"type": "number"}]
    assert inputs["either"]["anyOf"] == [{"type": "string", "enum": ["auto"]}, {"type": "integer"}]
    assert inputs["grid"]["items"] == {"type": "array", "items": {"type": "number"}}
    assert inputs["parts"]["items"] == {"type": "string", "enum": ["a", "b"]}
    assert (inputs["colors"]["type"], inputs["colors"]["items"]) == ("array", {"$ref": "#/components/schemas/colors"})
    assert enums == {"size": ["small", "large"], "mode": ["a", "b"], "level": [1, 2]}
    assert schemas["Input"]["properties"]["size"]["default"] == "small"
    assert schemas["Input"]["properties"]["images"]["nullable"] is True
    assert schemas["Input"]["required"] == ["prompt"]
