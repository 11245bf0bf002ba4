"""The document at `/openapi.json`: valid, complete, and true of the server that gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import validate

from panglot.engine.call import Fault
from panglot.web import app
from panglot.web.contract import CONTROL, PUBLIC, Contract, ErrorAnswer, InferRoute, Page
from panglot.web.documents.bodies import answer_content, portable, request_content
from panglot.web.documents.openapi import document, operation_names
from panglot.web.documents.schemas import Definitions
from panglot.web.v2.routes import FORMS
from support.server import Server, serving
from support.still import still_front, still_model

BINARY = {"type": "string", "format": "binary"}
PACKAGES = ("documented_json", "documented_form", "documented_hostile", "documented_stream")


def resolved(document: dict[str, Any], node: Any) -> Any:
    """The node with every reference replaced by what it points to."""
    if isinstance(node, list):
        return [resolved(document, entry) for entry in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return resolved(document, target)
    return {key: resolved(document, value) for key, value in node.items()}


def check_answer(document: dict[str, Any], answer: httpx.Response) -> None:
    """The answer is one the document declares for its route: status, headers, content type and body."""
    operation = document["paths"][answer.request.url.path][answer.request.method.lower()]
    responses = operation["responses"]
    status = str(answer.status_code)
    assert status in responses or f"{status[0]}XX" in responses, f"{status} is not declared"
    declared = resolved(document, responses.get(status) or responses[f"{status[0]}XX"])
    for name, header in declared["headers"].items():
        assert name in answer.headers or not header["required"], f"{status} lacks {name}"
    content_type = answer.headers["content-type"].partition(";")[0]
    assert content_type in declared["content"]
    if content_type == "application/json":
        OAS30Validator(declared["content"][content_type]["schema"]).validate(answer.json())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev", "--max-body", "2000") as server:
        yield server


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, Any]:
    answer = server.client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_is_valid(package: str) -> None:
    with serving(package) as server:
        validate(server.client.get("/openapi.json").json())


def test_is_valid_before_the_script_is_ready() -> None:
    front = still_front(state="loading")
    found = document(front, [("", still_model(front))])
    validate(found)
    content = found["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert list(content) == ["application/json", "multipart/form-data", "application/octet-stream"]


def test_says_what_the_script_says(described: dict[str, Any]) -> None:
    assert described["info"]["title"] == "documented_json"
    assert described["info"]["description"] == "Scores a text against labels."
    media = described["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert media["example"] == {"text": "a quick brown fox", "labels": ["fox", "dog"], "options": {"top": 1}}
    assert sorted(media["schema"]["required"]) == ["labels", "options", "text"]
    assert media["schema"]["properties"]["labels"] == {"type": "array", "items": {"type": "string"}}
    options = {"$ref": "#/components/schemas/Options"}
    assert media["schema"]["properties"]["options"] == {"anyOf": [options, {"enum": [None]}]}
    order = described["components"]["schemas"]["Options"]["properties"]["order"]
    assert order == {"type": "string", "enum": ["score", "name", None], "nullable": True}
    result = described["paths"]["/predict"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert result["items"]["properties"]["rank"] == {"type": "integer", "format": "int64", "nullable": True}


def test_describes_an_upload_by_its_example() -> None:
    with serving("documented_form") as server:
        content = server.client.get("/openapi.json").json()["paths"]["/predict"]["post"]["requestBody"]["content"]
        assert content == {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"image": BINARY, "caption": {"type": "string"}},
                    "required": ["image"],
                },
                "encoding": {"image": {"contentType": "image/*"}},
            }
        }


def test_describes_a_stream_by_its_two_forms() -> None:
    with serving("documented_stream") as server:
        found = server.client.get("/openapi.json").json()
        for accept in ("text/event-stream", "application/x-ndjson"):
            answer = server.predict(3, headers={"accept": accept})
            assert answer.headers["content-type"] == accept
            check_answer(found, answer)


def test_keeps_markup_of_the_script_as_text() -> None:
    with serving("documented_hostile") as server:
        about = server.client.get("/openapi.json").json()["info"]["description"]
        assert "<" not in about
        assert "\u202e" not in about
        assert "&lt;script>" in about


WRONG: dict[str, tuple[int, dict[str, Any]]] = {
    "broken": (400, {"content": b"{", "headers": {"content-type": "application/json"}}),
    "host": (403, {"json": {}, "headers": {"host": "elsewhere.example"}}),
    "large": (413, {"content": b"x" * 3000}),
    "line": (414, {"json": {}, "params": {"x": "y" * 9000}}),
    "compressed": (415, {"json": {}, "headers": {"content-encoding": "gzip"}}),
    "refused": (422, {"json": {"labels": "none"}}),
    "headers": (431, {"json": {}, "headers": {"x-much": "y" * 9000}}),
    "failed": (500, {"json": {"text": "fail", "labels": [], "options": None}}),
    "late": (504, {"json": {"text": "", "labels": []}, "headers": {"x-timeout-ms": "0"}}),
}


@pytest.mark.parametrize("case", WRONG)
def test_declares_every_failure(case: str, server: Server, described: dict[str, Any]) -> None:
    status, request = WRONG[case]
    answer = httpx.post(server.url + "/predict", **request, timeout=30)
    assert answer.status_code == status
    check_answer(described, answer)


def test_declares_what_is_right(server: Server, described: dict[str, Any]) -> None:
    media = described["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    OAS30Validator(resolved(described, media["schema"])).validate(media["example"])
    check_answer(described, server.predict(media["example"]))
    for path, methods in described["paths"].items():
        if "get" in methods:
            answer = server.client.get(path)
            assert answer.status_code == 200
            check_answer(described, answer)


def test_declares_the_neutral_refusals(server: Server, described: dict[str, Any]) -> None:
    for path in (path for path, methods in described["paths"].items() if "get" in methods):
        answer = httpx.get(server.url + path, headers={"host": "elsewhere.example"}, timeout=30)
        assert answer.status_code == 403
        check_answer(described, answer)


def test_asks_for_the_token_where_the_server_does() -> None:
    with serving("documented_json", env={"PANGLOT_TOKEN": "secret"}) as server:
        credentials = {"authorization": "Bearer secret"}
        found = server.client.get("/openapi.json", headers=credentials).json()
        validate(found)
        assert found["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
        assert "secret" not in str(found)
        for path, methods in found["paths"].items():
            for method, operation in methods.items():
                answer = server.client.request(method, path)
                assert (answer.status_code == 401) == bool(operation["security"]), path
                check_answer(found, answer)


def test_declares_that_other_origins_are_refused() -> None:
    with serving("documented_json", "--no-auth") as server:
        found = server.client.get("/openapi.json").json()
        answer = server.predict({}, headers={"origin": "http://elsewhere.example"})
        assert answer.status_code == 403
        check_answer(found, answer)


def test_claims_no_token_where_none_is_needed(described: dict[str, Any]) -> None:
    assert "securitySchemes" not in described["components"]
    assert "401" not in described["paths"]["/predict"]["post"]["responses"]


def test_has_every_route_of_the_server(described: dict[str, Any]) -> None:
    start = "/v2/models/documented_json"
    shown = [page for page in app.ROUTES if not page.path.startswith(app.OF_MODEL) and page.access != CONTROL]
    pages = [page.path for page in shown]
    paths = {path.replace("{model}", "documented_json").replace("{version}", "1") for path in pages}
    paths -= {"/playground.json", "/status/events", "/login", "/logout", "/reload", "/pages/frame"}
    tensors = {f"{start}{version}/{form}" for version in ("", "/versions/1") for form in FORMS}
    assert set(described["paths"]) == {"/predict", *tensors, *(path for path in paths if "{" not in path)}


def test_operations_have_names_of_their_own(described: dict[str, Any]) -> None:
    names = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    paths = ("/", "/v1/models/{name}:predict", "/v1/models/:predict", "/8", "/metrics")
    found = operation_names(paths)
    assert found[:2] == ["infer", "v1_models_predict"]
    assert len(set(found)) == len(found)
    assert "metrics" not in found
    assert all(name.isidentifier() for name in found)


def test_a_platform_has_its_own_routes_and_words() -> None:
    def write_error(fault: Fault, request_id: str) -> ErrorAnswer:
        return ErrorAnswer(429 if fault.code == "queue_full" else fault.status, b"text/plain", b"no")

    front = still_front()
    routes = (InferRoute("/", "/"), InferRoute("/models/{name}", "/models/{name}"))
    pages = (Page("/health", PUBLIC, app.live), Page("/metrics", PUBLIC, app.metrics))
    still_model(front).contract = Contract(routes, write_error, pages)
    found = document(front, [("", still_model(front))])
    validate(found)
    assert set(found["paths"]["/"]) == {"get", "post"}
    assert found["paths"]["/models/{name}"]["post"]["operationId"] == "models"
    assert found["paths"]["/metrics"]["get"]["summary"] == "A page of plain"
    responses = found["paths"]["/"]["post"]["responses"]
    assert list(responses["429"]["content"]) == ["text/plain"]
    assert {"400", "500", "503", "504", "default"} <= set(responses)
    assert "$ref" in found["paths"]["/docs"]["get"]["responses"]["400"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        ({"type": "null"}, {"enum": [None]}),
        ({"type": "integer"}, {"type": "integer", "format": "int64"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, {"enum": ["a", None]}),
        ({"anyOf": [{"type": "null"}]}, {"enum": [None]}),
        ({"type": "array", "minItems": 2}, {"type": "array", "minItems": 2, "items": {}}),
        (
            {"type": "object", "additionalProperties": {"type": "null"}},
            {"type": "object", "additionalProperties": {"enum": [None]}},
        ),
    ],
)
def test_schemas_become_portable(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert portable(schema) == expected


def test_requests_by_hint_and_example() -> None:
    picture = {"kind": "file", "type": "image/png", "name": "a.png"}
    assert list(request_content({"example": picture})) == ["image/png", "image/*", "application/octet-stream"]
    assert list(request_content({"request_schema": BINARY})) == ["application/octet-stream"]
    form = {"type": "object", "properties": {"images": {"type": "array", "items": BINARY}}}
    assert list(request_content({"request_schema": form})) == ["multipart/form-data"]
    inside = {"$defs": {"Item": form}, "properties": {"item": {"$ref": "#/$defs/Item"}}}
    definitions = Definitions(["Item"])
    assert definitions.resolved({"request_schema": inside})["request_schema"] == {
        "properties": {"item": {"$ref": "#/components/schemas/Item_2"}}
    }
    assert definitions.schemas["Item_2"]["properties"]["images"]["items"]["format"] == "byte"
    both = ["application/json", "multipart/form-data"]
    assert sorted(request_content({"request_schema": form, "files_in_json": True})) == both
    mixed = {"anyOf": [BINARY, form, {"type": "string"}, {"type": "number"}]}
    content = request_content({"request_schema": mixed, "example": {"kind": "json", "value": "x"}})
    assert list(content) == ["application/octet-stream", "multipart/form-data", "application/json"]
    assert content["application/json"] == {
        "schema": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "example": "x",
    }


def test_what_json_cannot_hold_is_left_out() -> None:
    assert request_content({"example": {"kind": "json", "value": 2**70}})["application/json"] == {"schema": {}}
    assert request_content({"request_schema": {"enum": ["\ud800"]}}) == request_content({})


def test_results_by_hint() -> None:
    assert list(answer_content({})) == ["application/json", "application/octet-stream", "*/*"]
    assert list(answer_content({"response_schema": BINARY})) == ["application/octet-stream", "*/*"]
    nested = {"type": "object", "properties": {"thumbnail": BINARY}}
    found = answer_content({"response_schema": nested})["application/json"]["schema"]
    assert found["properties"]["thumbnail"] == {"type": "string", "format": "byte"}


def test_types_that_only_a_platform_knows_are_bytes() -> None:
    content = request_content({"request_types": ["application/json", "text/csv"]})
    assert content == {"application/json": {"schema": {}}, "text/csv": {"schema": BINARY}}
