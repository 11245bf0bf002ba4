"""What undecorated scripts get of a request, and what clients get of their results."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from support.server import Server, serving

JSON = {"Content-Type": "application/json"}
SCRIPT_FAILED = {"message": "An unexpected error occurred in scoring script. Check the logs for more info."}
INTERNAL = {"message": "An unexpected internal error occurred. Check the logs for more info."}
MARK = "x-ms-run-function-failed"


def ask(server: Server, op: str, **more: Any) -> httpx.Response:
    return server.client.post("/score", json={"op": op, **more})


def sent(server: Server, content: bytes | str, kind: str = "application/json") -> httpx.Response:
    return server.client.post("/score", content=content, headers={"Content-Type": kind} if kind else {})


# What run() gets


@pytest.mark.document("azureml.14")
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/csv; charset=latin-1", "image/png", ""])
def test_the_body_as_text(plain: Server, kind: str) -> None:
    assert sent(plain, "caf\u00e9", kind).json() == {"got": "caf\u00e9", "type": "str"}


def test_an_empty_body_is_an_empty_text(plain: Server) -> None:
    assert sent(plain, "").json() == {"got": "", "type": "str"}


@pytest.mark.document("azureml.17")
def test_of_a_form_there_is_an_empty_text_and_one_warning(plain: Server) -> None:
    for _ in range(2):
        assert sent(plain, '{"x": 1}', "application/x-www-form-urlencoded").json()["got"] == ""
    assert plain.client.post("/score", files={"a": b"b"}).json()["got"] == ""
    plain.wait_log("it should send Content-Type: application/json")
    assert plain.log.count("it should send Content-Type: application/json") == 1


def test_a_multipart_body_without_a_boundary_is_text(plain: Server) -> None:
    assert sent(plain, "text", "multipart/form-data").json()["got"] == "text"


@pytest.mark.document("azureml.18")
def test_a_body_that_is_not_utf_8(plain: Server) -> None:
    answer = sent(plain, b"\xff\xfe")
    reason = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    assert (answer.status_code, answer.json()) == (400, {"message": f"Input cannot be decoded as UTF-8: {reason}"})
    assert answer.headers[MARK] == "False"


@pytest.mark.document("azureml.19")
def test_the_query_of_a_get(plain: Server) -> None:
    answer = plain.client.get("/score?a=1&b=[1,2]&c=x&c=y&d=")
    assert answer.json()["got"] == {"a": 1, "b": [1, 2], "c": ["x", "y"], "d": ""}


@pytest.mark.document("azureml.13")
def test_names_of_headers_are_in_title_case(plain: Server) -> None:
    names = plain.client.post("/score", json={"op": "headers"}, headers={"x-ODD": "1", "under_score": "2"}).json()
    assert "X-Odd" in names
    assert "Content-Type" in names
    assert not any("_" in name for name in names)


# What clients get


@pytest.mark.document("azureml.24")
def test_results_are_json_as_the_json_module_writes_it(plain: Server) -> None:
    assert ask(plain, "x").text == '{"got": {"op": "x"}, "type": "str"}'
    assert ask(plain, "letters").text == '{"caf\\u00e9": "\\u4f60\\u597d"}'
    assert ask(plain, "none").text == "{}"
    assert ask(plain, "text").text == '"{\\"a\\": 1}"'
    assert json.loads(ask(plain, "text").json()) == {"a": 1}


@pytest.mark.document("azureml.25")
@pytest.mark.parametrize("op", ["set", "numpy"])
def test_results_that_json_cannot_hold(plain: Server, op: str) -> None:
    mark = len(plain.lines)
    answer = ask(plain, op)
    assert (answer.status_code, answer.json(), answer.headers[MARK]) == (500, INTERNAL, "False")
    plain.wait_log("is not JSON serializable", after=mark)


def test_numpy_results_are_sent_where_a_setting_allows_it() -> None:
    with serving("azureml_plain", env={"PANGLOT_STRICT_RESULTS": "no"}) as server:
        assert ask(server, "numpy").json() == {"scores": [1.0, 1.0]}


@pytest.mark.document("azureml.26")
def test_responses_of_the_script(plain: Server) -> None:
    answer = ask(plain, "raw")
    assert (answer.status_code, answer.content, answer.headers.get_list("x-a")) == (201, b"raw", ["1", "2"])
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    typed = ask(plain, "typed")
    assert (typed.text, typed.headers.get_list("content-type")) == ("caf\u00e9", ["text/plain; charset=utf-8"])
    empty = ask(plain, "empty")
    assert (empty.text, empty.headers["content-type"]) == ("{}", "application/json")
    assert ask(plain, "no content").status_code == 204


@pytest.mark.document("azureml.27", "azureml.28")
def test_headers_of_the_platform(plain: Server) -> None:
    failed, marked = ask(plain, "failed"), ask(plain, "marked")
    assert (failed.status_code, failed.json(), failed.headers[MARK]) == (500, {"e": 1}, "True")
    assert (marked.status_code, marked.text, marked.headers[MARK]) == (400, "bad", "True")
    for answer in (failed, marked, ask(plain, "x"), ask(plain, "raise"), sent(plain, b"\xff")):
        assert answer.headers["x-ms-server-version"] == "azmlinfsrv/1.5.1"
        assert answer.headers.get_list(MARK) in (["True"], ["False"])
    assert re.fullmatch(r"\d+\.\d{3}", ask(plain, "x").headers["x-ms-run-fn-exec-ms"])
    assert "x-ms-run-fn-exec-ms" not in ask(plain, "raise").headers


@pytest.mark.document("azureml.29")
def test_request_ids_are_sent_back(plain: Server) -> None:
    def heard(**headers: str) -> tuple[str | None, ...]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = plain.client.post("/score", json={}, headers=given)
        names = ("x-request-id", "x-ms-request-id", "x-ms-client-request-id", "traceid")
        return tuple(answer.headers.get(name) for name in names)

    own = heard()
    assert own[0] == own[1]
    assert own[2:] == (None, None)
    assert heard(x_request_id="a") == ("a", "a", None, None)
    assert heard(x_request_id="a", x_ms_request_id="b") == ("a", "b", "b", None)
    assert heard(x_request_id="a", x_ms_client_request_id="c") == ("a", "c", "c", None)
    assert heard(x_request_id="a", x_ms_request_id="b", x_ms_client_request_id="c") == ("a", "b", "c", None)
    assert heard(x_request_id="a", TraceId="t") == ("a", "a", None, "t")


@pytest.mark.document("azureml.30")
@pytest.mark.parametrize("name", ["x-request-id", "x-ms-request-id", "x-ms-client-request-id"])
def test_a_request_id_that_is_too_long(plain: Server, name: str) -> None:
    answer = plain.client.post("/score", json={}, headers={name: "a" * 101})
    assert answer.status_code == 431
    assert answer.json()["message"].endswith("must not exceed 100 characters")
    assert plain.client.post("/score", json={}, headers={name: "a" * 100}).status_code == 200


@pytest.mark.document("azureml.46")
def test_a_response_in_parts(plain: Server) -> None:
    with plain.client.stream("POST", "/score", json={"op": "stream"}) as answer:
        assert (answer.status_code, answer.headers["transfer-encoding"]) == (200, "chunked")
        assert (answer.headers["content-type"], answer.headers[MARK]) == ("text/plain", "False")
        assert answer.read() == b"part 0\npart 1\npart 2\n"


@pytest.mark.document("azureml.38")
def test_a_script_that_raises_keeps_its_reason_for_the_log(plain: Server) -> None:
    mark = len(plain.lines)
    answer = ask(plain, "raise")
    assert (answer.status_code, answer.json(), answer.headers[MARK]) == (500, SCRIPT_FAILED, "True")
    plain.wait_log("ValueError: a secret of the script", after=mark)


# Routes


@pytest.mark.document("azureml.31")
def test_health(plain: Server) -> None:
    answer = plain.client.get("/")
    assert (answer.status_code, answer.text) == (200, "Healthy")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = plain.client.get("/", headers={"accept": "text/html"})
    assert "<html" in page.text


@pytest.mark.document("azureml.32", "azureml.33", "azureml.34")
def test_other_methods_and_paths(plain: Server) -> None:
    asked = plain.client.options("/score")
    assert (asked.status_code, asked.content, asked.headers[MARK]) == (200, b"", "False")
    for method in ("PUT", "DELETE", "PATCH"):
        answer = plain.client.request(method, "/score")
        expected = (405, {"message": "The method is not allowed for the requested URL."})
        assert (answer.status_code, answer.json()) == expected
    unknown = plain.client.get("/nope")
    assert unknown.status_code == 404
    assert unknown.json()["message"].startswith("The requested URL was not found on the server.")


@pytest.mark.document("azureml.35", "azureml.37")
def test_swagger_of_an_undecorated_script(plain: Server) -> None:
    old, new, newest = (
        plain.client.get("/swagger.json", params={"version": name}).json() for name in ("2", "3", "3.1")
    )
    assert (old["swagger"], new["openapi"], newest["openapi"]) == ("2.0", "3.0.3", "3.1.0")
    assert plain.client.get("/swagger.json").json() == old
    assert old["definitions"]["ServiceInput"] == {"type": "object", "example": {}}
    answer = plain.client.get("/swagger.json", params={"version": "9"})
    said = "Swagger version [9] is not valid. Supported versions: [2, 3, 3.1]."
    assert (answer.status_code, answer.json()) == (404, {"message": said})


def test_a_page_of_another_origin_may_call_where_the_platforms_variable_says_so() -> None:
    with serving("azureml_plain", env={"AML_CORS_ORIGINS": "https://a.example"}) as server:
        headers = {"origin": "https://a.example", "access-control-request-method": "POST"}
        assert server.client.options("/score", headers=headers).headers["access-control-allow-origin"]
        answer = server.client.post("/score", json={}, headers={"origin": "https://a.example"})
        assert answer.headers["access-control-allow-origin"] == "https://a.example"


# Clients


@pytest.mark.document("azureml.47")
def test_a_client_with_a_key_which_the_script_does_not_see() -> None:
    with serving("azureml_plain", env={"PANGLOT_TOKEN": "endpoint-key"}) as server:
        refused = server.client.post("/score", json={})
        assert refused.status_code == 401
        assert set(refused.json()) == {"message"}
        headers = {"authorization": "Bearer endpoint-key", "azureml-model-deployment": "blue"}
        seen = server.client.post("/score", json={"op": "headers"}, headers=headers)
        assert "Authorization" not in seen.json()
        assert "Azureml-Model-Deployment" in seen.json()
        assert server.client.get("/").text == "Healthy"
