"""Scripts whose functions have type hints: what a request must hold, and what is said of one that does not."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate

from support.programs import need
from support.server import Server, panglot, serving
from support.traffic import times


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("typed") as started:
        yield started


def post(server: Server, path: str, value: Any) -> Any:
    answer = server.client.post(path, json=value)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer: httpx.Response) -> dict[str, str]:
    """The fields that an answer says are wrong."""
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert sorted(error) == ["code", "fields", "message", "request_id"]
    assert error["code"] == "invalid_input"
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["fields"][0]["path"] in error["message"]
    return {field["path"]: field["message"] for field in error["fields"]}


def test_arguments_come_from_json_forms_the_query_and_files(server: Server) -> None:
    from_json = post(server, "/predict", {"image": "aGk=", "threshold": 1, "color": "red"})
    assert (from_json["image"], from_json["threshold"], from_json["color"]) == (2, 1.0, "RED")
    files = {"image": ("七.png", b"12345", "image/png")}
    form = server.client.post("/predict", files=files, data={"threshold": "0.25", "labels": ["a", "b"]}).json()
    assert (form["image"], form["name"], form["threshold"], form["labels"]) == (5, "七.png", 0.25, ["a", "b"])
    raw = server.client.post("/predict?threshold=2&labels=x", content=b"123", headers={"content-type": "image/png"})
    assert (raw.json()["image"], raw.json()["threshold"], raw.json()["labels"]) == (3, 2.0, ["x"])


def test_every_wrong_field_is_told_and_the_script_is_not_called(server: Server) -> None:
    before = post(server, "/predict", {"image": ""})["calls"]
    wrong = {"image": 5, "threshold": -1, "labels": ["a", 1], "colour": "red"}
    assert refused(server.client.post("/predict", json=wrong)) == {
        "image": "must be a file (in JSON: base64, or a data: URI), not 5",
        "threshold": "must be at least 0, not -1.0",
        "labels[1]": "must be a string, not 1",
        "colour": "is not known; did you mean color?",
    }
    assert refused(server.client.post("/predict?zoom=2", data={"threshold": "x"})) == {
        "threshold": 'must be a number, not "x"',
        "zoom": "is not known; there are only: image, threshold, labels, color",
        "image": "is missing; it must be a file",
    }
    assert post(server, "/predict", {"image": ""})["calls"] == before + 1
    assert "Traceback" not in server.log


def test_one_object_is_the_whole_body(server: Server) -> None:
    assert post(server, "/box", {"x": 1, "inside": [{"x": 2}]}) == {"x": 1, "kind": "Box", "boxes": 2}
    assert server.client.post("/box", data={"x": "7"}).json()["x"] == 7
    deep: Any = {"x": "deep"}
    for _ in range(20):
        deep = {"x": 1, "inside": [deep]}
    path = "inside[0]." * 20 + "x"
    assert refused(server.client.post("/box", json=deep)) == {path: 'must be an integer, not "deep"'}
    for _ in range(100):
        deep = {"x": 1, "inside": [deep]}
    assert server.client.post("/box", json=deep).status_code == 400


def test_async_functions_and_generators_take_arguments_too(server: Server) -> None:
    everything = {"text": "a", "box": {"x": 3}, "options": {"order": "name"}, "limit": 2}
    assert post(server, "/search", everything) == ["a", 3, {"order": "name"}, 2]
    assert refused(server.client.post("/search", json={"text": "a", "options": {"order": "x"}})).keys() == {
        "options.order"
    }
    assert server.client.post("/words", json={"text": "a b", "times": 2}).text.count("data:") == 4
    assert server.client.post("/words", content=b"a b", headers={"content-type": "text/plain"}).text.count("data:") == 2
    assert refused(server.client.post("/words", json={"times": 1.5})).keys() == {"text", "times"}


def test_one_value_may_be_the_body(server: Server) -> None:
    assert post(server, "/sum", [1, 2.5]) == post(server, "/sum", {"values": [1, 2.5]}) == 3.5


def test_a_batch_has_columns_or_items_and_a_bad_one_costs_itself(server: Server) -> None:
    def ask(number: int) -> httpx.Response:
        if number % 4 == 3:
            return server.client.post("/sizes", json={"images": number})
        return server.client.post("/sizes", json={"images": "aGk=", **({"scale": number} if number % 2 else {})})

    with ThreadPoolExecutor(16) as many:
        answers = list(many.map(ask, range(32)))
    for number, answer in enumerate(answers):
        if number % 4 == 3:
            assert refused(answer).keys() == {"images"}
        else:
            assert answer.json()["size"] == 2.0 * (number if number % 2 else 1)
    assert post(server, "/areas", {"x": 3, "y": 4}) == 12
    assert refused(server.client.post("/areas", json={"y": 4})).keys() == {"x"}


def test_the_document_says_what_every_route_takes(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    validate(document)
    content = document["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert content["multipart/form-data"]["schema"]["properties"]["image"]["format"] == "binary"
    assert content["application/json"]["schema"]["properties"]["image"]["format"] == "byte"
    assert content["application/json"]["schema"]["properties"]["threshold"]["minimum"] == 0
    box = document["components"]["schemas"]["Box"]
    assert box["properties"]["inside"] == {"type": "array", "items": {"$ref": "#/components/schemas/Box"}}
    searched = document["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]
    assert searched["example"] == {"text": "text", "box": None, "options": None, "limit": 10}
    assert post(server, "/search", searched["example"]) == ["text", None, None, 10]


def test_the_try_line_works(tmp_path: Path) -> None:
    need("curl")
    (tmp_path / "model.py").write_text("def predict(text: str, times: int = 2) -> str:\n    return text * times\n")
    with serving(tmp_path) as server:
        line = server.wait_log("try: (.*)").group(1)
        assert subprocess.run(shlex.split(line), capture_output=True, text=True, check=True).stdout == '"texttext"'


ROUTES = ("/predict", "/box", "/search", "/words", "/sizes", "/areas", "/sum")
NAMES = st.sampled_from(["image", "threshold", "labels", "x", "y", "inside", "text", "box", "options", "values"])
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=4)
anything = st.recursive(
    leaves.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4),
)


@settings(max_examples=times(60, 2000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(ROUTES), anything, st.dictionaries(NAMES, st.text(max_size=4), max_size=2))
def test_whatever_is_sent_is_answered_or_refused(server: Server, route: str, value: Any, query: dict[str, str]) -> None:
    for answer in (server.client.post(route, json=value), server.client.post(route, data=query, params=query)):
        assert answer.status_code in (200, 400, 415, 422), answer.text
    assert server.client.post("/sum", json=[1]).json() == 1.0


# Start errors


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("def predict(x: Nowhere): ...", "model.py:3: predict: the hint of x cannot be evaluated: NameError"),
        ("def predict(x: open): ...", "model.py:3: predict: the hint of x is not a type that a request can have"),
        (
            "import re\ndef predict(x: list[re.Pattern]): ...",
            "model.py:4: predict: the hint of an item of x is not a type",
        ),
        ("def predict_batch(x: float): ...", "model.py:3: predict_batch: x is float, but a batch gives a list"),
        ("def predict(x, y): ...", "model.py:3: predict(x, y) must take exactly one argument"),
    ],
)
def test_hints_that_make_no_sense_end_the_start(script: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(f"from __future__ import annotations\n\n{script}\n")
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_example_that_does_not_fit_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(x: int):\n    return x\n\ndef example():\n    return {'x': 'a'}\n")
    with serving(tmp_path) as server:
        server.wait_log("what example.. returns is no request: x must be an integer")
        assert server.predict({"x": 1}).json() == 1


# With stages and pools


STAGED = """
from dataclasses import dataclass
from panglot import File

@dataclass
class Item:
    text: str
    times: int = 2

class Model:
    def preprocess(self, text: str, times: int = 2):
        return Item(text, times)
    def predict_batch(self, items):
        return [item.text * item.times for item in items]
    def postprocess(self, result: str):
        return result.upper()
    def example(self):
        return {"text": "example"}
"""


@pytest.mark.parametrize("options", [(), ("--pools", "preprocess=1,postprocess=1")], ids=["one process", "pools"])
def test_the_first_stage_has_the_arguments(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(STAGED)
    with serving(tmp_path, *options) as server:
        assert server.predict({"text": "ab"}).json() == "ABAB"
        assert refused(server.predict({"times": 1})) == {"text": "is missing; it must be a string"}


def test_arguments_go_from_pool_to_pool(tmp_path: Path) -> None:
    script = "class Model:\n    def predict(self, box: Box, scale: float = 1.0):\n        return box.x * scale\n"
    classes = "from dataclasses import dataclass\n@dataclass\nclass Box:\n    x: int\n\n"
    (tmp_path / "model.py").write_text(classes + script)
    with serving(tmp_path, "--pools", "preprocess=1,postprocess=1") as server:
        assert server.predict({"box": {"x": 3}, "scale": 2}).json() == 6.0
