"""What scripts may answer besides a value, and how they refuse a request."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from support.server import Server, serving, wait_until

ODD = 'été "1".png\r\nx: y'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("answers") as started:
        yield started


@pytest.mark.parametrize("path", ["/predict", "/together"])
def test_a_response_has_a_status_and_headers_of_its_own(server: Server, path: str) -> None:
    def count() -> float:
        return server.metric("panglot_requests_total", route=path, status="201")

    before = count()
    answer = server.client.post(path, json="created")
    assert (answer.status_code, answer.json()) == (201, {"id": 7})
    assert (answer.headers["location"], answer.headers["x-count"]) == ("/things/7", "3")
    assert answer.headers["content-type"] == "application/json"
    # With several fronts, what the others have counted may be told a moment later.
    wait_until(lambda: count() >= before + 1)


def test_a_header_may_come_several_times(server: Server) -> None:
    assert server.predict("cookies").headers.get_list("set-cookie") == ["a=1", "b=2"]


def test_a_text_with_a_content_type_is_sent_as_it_is(server: Server) -> None:
    answer = server.predict("page")
    assert (answer.text, answer.headers["content-type"]) == ("<p>é</p>", "text/html; charset=utf-8")
    answer = server.predict("problem")
    assert (answer.status_code, answer.json()) == (503, {"title": "no"})
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_answer_may_be_without_a_body(server: Server) -> None:
    answer = server.predict("nothing")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-length" not in answer.headers
    assert server.predict("created").status_code == 201
    moved = server.predict("moved")
    assert (moved.status_code, moved.headers["location"]) == (302, "/docs")


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        ("file", 'attachment; filename="report.csv"'),
        ("path", 'attachment; filename="passwd"'),
        ("odd", f"attachment; filename=\"_t_ _1_.png__x: y\"; filename*=UTF-8''{quote(ODD, safe='')}"),
        ("unnamed", None),
        ("renamed", "inline"),
    ],
)
def test_a_file_is_sent_with_its_name(server: Server, kind: str, header: str | None) -> None:
    answer = server.predict(kind)
    assert answer.status_code == 200
    assert answer.headers.get("content-disposition") == header
    assert "x" not in answer.headers


def test_pictures_arrays_and_bytes_inside_of_json(server: Server) -> None:
    answer = server.predict("inside").json()
    start, _, data = answer["picture"].partition(",")
    assert start == "data:image/png;base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert (answer["boxes"], answer["raw"]) == ([[1.0, 1.0]], "YWJj")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("line", "the value of the header X-A must be printable ASCII in one line"),
        ("name", "is not the name of a header"),
        ("unicode", "the value of the header X-A must be printable ASCII"),
        ("length", "the header Content-Length is the server's own"),
        ("chunked", "the header transfer-encoding is the server's own"),
        ("type", "is not a content type"),
        ("status", "the status of a Response is 200 to 599, not 99"),
        ("long", "of at most 4000 characters"),
        ("body", "an answer with status 204 has no body"),
    ],
)
def test_no_header_of_a_script_breaks_the_framing(server: Server, kind: str, told: str) -> None:
    lines = len(server.lines)
    answer = server.predict(kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "bad_result")
    assert "x-evil" not in answer.headers
    server.wait_log(told, after=lines)
    assert server.predict("created").status_code == 201


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("text", 404, {"code": "unknown_thing", "message": "no such thing"}),
        ("dict", 422, {"code": "bad_request", "message": "two are wrong", "fields": ["a", "b"]}),
        ("bare", 400, {"code": "bad_request", "message": "the script refuses this request", "wanted": 3}),
        ("own", 409, {"code": "bad_request", "message": "own"}),
        ("unspeakable", 422, {"code": "bad_request"}),
        ("odd", 500, {"code": "script_error"}),
        ("huge", 500, {"code": "script_error"}),
        ("code", 500, {"code": "script_error"}),
    ],
)
def test_an_error_says_what_its_script_says(server: Server, kind: str, status: int, error: dict[str, Any]) -> None:
    answer = server.client.post("/fail", json=kind)
    told = answer.json()["error"]
    assert answer.status_code == status
    assert told["request_id"] == answer.headers["x-request-id"]
    assert {key: value for key, value in told.items() if key in error} == error


def test_one_bad_answer_of_a_batch_costs_the_others_nothing(server: Server) -> None:
    kinds = ["created", "line", "file", "status", "odd", "cookies"] * 4

    def ask(kind: str) -> httpx.Response:
        return server.client.post("/together", json=kind)

    with ThreadPoolExecutor(12) as many:
        statuses = [answer.status_code for answer in many.map(ask, kinds)]
    assert statuses == [201, 500, 200, 500, 200, 200] * 4


def test_statuses_of_its_own_are_declared(server: Server) -> None:
    answers = server.client.get("/openapi.json").json()["paths"]["/predict"]["post"]["responses"]
    assert {"200", "2XX", "4XX"} <= set(answers)


def test_an_example_is_run_as_a_request_would_be(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from panglot import File, Response, request\n\ndef example():\n    return 1\n\n"
        "def predict(item):\n    print('asked by', request().client, request().headers['host'])\n"
        "    return Response(File('a.txt', 'text/plain', b'a'), status=203)\n"
    )
    with serving(tmp_path, "--warm-up", "fail") as server:
        server.wait_log("asked by 127.0.0.1 127.0.0.1")
        assert server.predict(1).status_code == 203


def test_someone_who_asks_for_another_path_is_told_all(server: Server) -> None:
    assert server.client.post("/predcit", json=1).json()["error"]["message"].endswith("POST /predict, /fail, /together")
