"""What a contract can say of its routes: methods, free segments, and which model a request names."""

from __future__ import annotations

from typing import Any

import pytest
from openapi_spec_validator import validate

from panglot.web.path_template import PathTemplate
from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Wire


def told(server: Server, method: str, path: str) -> dict[str, Any]:
    answer = server.client.request(method, path, content=b"{}" if method != "GET" else None)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_one_path_takes_several_methods(server: Server, method: str) -> None:
    assert told(server, method, "/anyhow")["method"] == method
    assert told(server, method, "/models/second/anyhow")["model"] == "second"


@pytest.mark.parametrize(
    ("method", "path", "route", "values"),
    [
        ("GET", "/jobs/7", "/jobs/{id}", {"id": "7"}),
        ("DELETE", "/jobs/a%26b=%2B%20%C3%A9", "/jobs/{id}", {"id": "a&b=+ é"}),
        ("PUT", "/jobs/7", "replace", {"id": "7"}),
        ("POST", "/jobs/7/cancel", "/jobs/{id}/cancel", {"id": "7"}),
        ("GET", "/jobs/7/parts/2", "/jobs/{id}/parts/{part}", {"id": "7", "part": "2"}),
        ("GET", "/files/a/b//c", "/files/{rest...}", {"rest": "a/b//c"}),
        ("POST", "/files/", "/files/{rest...}", {"rest": ""}),
        ("POST", "/v2/any-endpoint/run", "/v2/{endpoint}/run", {"endpoint": "any-endpoint"}),
        ("GET", "/what/is/this", "/{rest...}", {"rest": "what/is/this"}),
    ],
)
def test_the_worker_is_told_the_free_segments(
    server: Server, method: str, path: str, route: str, values: dict[str, str]
) -> None:
    for start, model in (("", "first"), ("/models/second", "second"), ("/models/second/versions/1", "second")):
        if start and route == "/v2/{endpoint}/run":
            continue
        found = told(server, method, start + path)
        assert (found["method"], found["route"], found["values"], found["model"]) == (method, route, values, model)


def test_a_repeated_request_is_told_the_same(server: Server) -> None:
    """The second one has a head that was parsed before."""
    for path in ("/jobs/1/cancel", "/anyhow", "/jobs/1/cancel"):
        for _ in range(3):
            assert told(server, "POST", path)["path"] == path
        assert told(server, "POST", path)["values"] == ({"id": "1"} if "jobs" in path else {})


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/jobs/7", {"GET", "PUT", "DELETE"}),
        ("DELETE", "/ask", {"POST", "GET"}),
        ("PUT", "/predictions/second", {"GET", "POST"}),
        ("POST", "/records/1/x", {"GET", "DELETE"}),
        ("PUT", "/v1/models/second", {"GET"}),
    ],
)
def test_405_lists_the_methods(server: Server, method: str, path: str, allowed: set[str]) -> None:
    answer = server.client.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert answer.json()["atlas"] == "method_not_allowed"


def test_a_free_first_segment_hides_no_page_of_the_server(server: Server) -> None:
    assert server.client.get("/v2/health/ready").json() == {"ready": True}
    assert server.client.get("/v2/models/first").json()["name"] == "first"
    assert "panglot_requests_total" in server.client.get("/metrics").text
    assert server.client.get("/docs/swagger-ui.css").headers["content-type"].startswith("text/css")
    assert server.client.get("/models/second/openapi.json").json()["openapi"]
    assert server.client.get("/status.json").status_code == 200


# The model that a request names


@pytest.mark.parametrize(
    ("method", "path", "model", "values"),
    [
        ("POST", "/predictions/first", "first", {"model": "first"}),
        ("GET", "/predictions/second", "second", {"model": "second"}),
        ("POST", "/predictions/second/1", "second", {"model": "second", "version": "1"}),
        ("POST", "/predictions/second/1.0", "second", {"model": "second", "version": "1.0"}),
        ("POST", "/predictions/second/1/a/b", "second", {"model": "second", "version": "1", "rest": "a/b"}),
        ("POST", "/v1/models/second:predict", "second", {"model": "second"}),
        ("POST", "/invocations", "first", {}),
        ("POST", "/invocations?x=1&model_name=second", "second", {}),
        ("POST", "/models/second/invocations", "second", {}),
        ("POST", "/models/second/predictions/second", "second", {"model": "second"}),
    ],
)
def test_a_request_names_its_model(server: Server, method: str, path: str, model: str, values: dict[str, str]) -> None:
    found = told(server, method, path)
    assert (found["model"], found["values"]) == (model, values)


@pytest.mark.parametrize(
    ("path", "code", "details"),
    [
        ("/predictions/third", "no_model", {"model": "third"}),
        ("/predictions/plain", "no_model", {"model": "plain"}),
        ("/predictions/second/2", "no_version", {"model": "second", "version": "2"}),
        ("/v1/models/third:predict", "no_model", {"model": "third"}),
        ("/invocations?model_name=third", "no_model", {"model": "third"}),
        ("/models/second/predictions/first", "no_model", {"model": "first"}),
    ],
)
def test_a_model_that_is_not_there_is_answered_in_the_manner_of_the_platform(
    server: Server, path: str, code: str, details: dict[str, str]
) -> None:
    answer = server.client.post(path, content=b"{}")
    assert answer.status_code == 404
    assert (answer.json()["atlas"], answer.json()["details"]) == (code, details)


SIZES = (0, 30_000, 200_000, 3_000_000)
"""Bodies that are parsed whole, that land in shared memory, that a thread reads."""


@pytest.mark.parametrize("size", SIZES)
def test_a_body_names_its_model(server: Server, size: int) -> None:
    text = "x" * size
    for body, model in (
        ({"model": "second", "text": text}, "second"),
        ({"text": text, "more": [{"model": "first"}], "model": "second"}, "second"),
        ({"model": "first", "text": text}, "first"),
        ({"text": text}, "first"),
    ):
        answer = server.client.post("/chat", json=body)
        assert answer.json()["model"] == model
        assert answer.json()["size"] == len(answer.request.content)
    held = server.metric("panglot_held_bytes")
    assert held == 0


@pytest.mark.parametrize("size", SIZES)
def test_a_body_that_names_no_model_of_the_server_is_answered_404(server: Server, size: int) -> None:
    for name in ("third", "plain", "é"):
        answer = server.client.post("/chat", json={"text": "x" * size, "model": name})
        assert (answer.status_code, answer.json()["atlas"]) == (404, "no_model")
    assert server.client.put("/chat", json={"model": "second"}).json()["method"] == "PUT"


def test_a_body_that_is_no_json_is_for_the_default_model(server: Server) -> None:
    for body in (b"", b"{", b"[1]", b'{"model": 3', b"\xff" * 100_000, b'{"a": ' + b"[" * 100_000):
        assert server.client.post("/chat", content=body).json()["model"] == "first"


def test_the_name_in_a_path_counts_before_that_in_a_body(server: Server) -> None:
    assert server.client.post("/models/second/chat", json={"model": "first"}).json()["model"] == "second"


def test_a_client_that_disconnects_while_its_body_is_read_leaves_nothing_behind(server: Server) -> None:
    body = b'{"text": "' + b"x" * 8_000_000 + b'", "model": "second"}'
    for _ in range(5):
        with Wire(server) as client:
            client.send(post(body, path="/chat"))
    wait_until(lambda: server.metric("panglot_held_bytes") == 0)


def test_pages_have_free_segments_and_name_models_too(server: Server) -> None:
    assert server.client.get("/v1/models/second").json() == {"name": "second", "version": "1", "state": "ready"}
    assert server.client.get("/models/second/v1/models/second").json()["name"] == "second"
    missing = server.client.get("/v1/models/third")
    assert (missing.status_code, missing.json()["atlas"]) == (404, "no_model")
    record = server.client.delete("/records/5/a/b")
    assert record.json() == {"model": "first", "method": "DELETE", "values": {"number": "5", "rest": "a/b"}}
    assert server.client.head("/records/5/").status_code == 200


def test_the_routes_are_documented(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    validate(document)
    paths = document["paths"]
    assert {"get", "put", "delete"} <= paths["/jobs/{id}"].keys()
    names = [entry.get("name") for entry in paths["/predictions/{model}/{version}/{rest}"]["parameters"]]
    assert names == ["model", "version", "rest"]
    assert "delete" in paths["/records/{number}/{rest}"]


def test_browsers_are_told_all_methods(atlas: Any) -> None:
    package = atlas("asked-by-browsers")
    env = {"PYTHONPATH": str(package.parent / "outside")}
    with serving(package, "--cors-origin", "https://a.example", env=env) as running:
        answer = running.client.options("/anyhow", headers={"origin": "https://a.example"})
        assert answer.status_code == 204
        assert {"GET", "PUT", "PATCH"} <= set(answer.headers["access-control-allow-methods"].split(", "))
        got = running.client.put("/anyhow", headers={"origin": "https://a.example"})
        assert got.headers["access-control-allow-origin"] == "https://a.example"


@pytest.mark.parametrize("text", ["/{a}/{a}", "/{a...}/x", "/{a}{b}"])
def test_a_template_that_cannot_be_matched_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="/"):
        PathTemplate(text)
