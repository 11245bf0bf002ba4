"""specs 2.2 and 2.4 of the platform, row by row: what is answered, and what a script gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.modelarts import MR_0105
from support.server import Server, serving

MR_0101 = b'{"erno": "MR.0101", "msg": "The input parameter is invalid", "words_result": {}}'
URLENCODED = {"content-type": "application/x-www-form-urlencoded"}
MULTIPART = {"content-type": "multipart/form-data; boundary=x"}


def post(server: Server, content: bytes | None = None, kind: str = "", query: str = "", **more: Any) -> httpx.Response:
    headers = {"content-type": kind} if kind else {}
    return server.client.post("/" + query, content=content, headers=headers, **more)


def text(value: str) -> dict[str, Any]:
    return {"type": "str", "value": value}


def file(content: bytes, size: int | None = None) -> dict[str, Any]:
    return {"type": "BytesIO", "position": 0, "size": size or len(content), "head": repr(content[:16])}


def fields(*items: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "dict", "items": [list(item) for item in items]}


@pytest.fixture(scope="module")
def rows() -> Iterator[Server]:
    with serving("modelarts_rows") as server:
        yield server


# 2.2 Endpoints


def test_get_health(echo: Server) -> None:
    answer = echo.client.get("/health")
    assert (answer.status_code, answer.text) == (200, '{"status": "OK"}')
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_success_is_json_with_blanks_and_without_escapes(echo: Server) -> None:
    answer = echo.client.post("/", json={"return": "chinese"})
    assert answer.content == '{"标签": "猫", "score": 0.5, "list": [1, 2]}'.encode()
    assert answer.headers["content-type"] == "application/json"


def test_nothing_usable(echo: Server) -> None:
    answer = post(echo, b"hello", "text/plain")
    assert (answer.status_code, answer.content) == (400, MR_0101)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("kind", "status"), [("KeyError", 400), ("TypeError", 400), ("Own", 400), ("ValueError", 500)])
def test_key_and_type_errors_are_400_and_others_500(echo: Server, kind: str, status: int) -> None:
    answer = echo.client.post("/", json={"raise": kind}, headers={"x-request-id": f"mine-{kind}"})
    assert (answer.status_code, answer.content) == (status, MR_0105)
    assert answer.headers["content-type"] == "application/json"
    echo.wait_log(f"request mine-{kind}: {kind}: ")
    echo.wait_log(f"(?s)mine-{kind}.*in _preprocess")


@pytest.mark.parametrize("kind", ["bytes", "object", "generator"])
def test_a_result_that_cannot_be_encoded_is_a_type_error(echo: Server, kind: str) -> None:
    answer = echo.client.post("/", json={"return": kind})
    assert (answer.status_code, answer.content) == (400, MR_0105)


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": }', b"\xff\xff", b"[1,]"])
def test_malformed_or_empty_json_gets_the_frameworks_page(echo: Server, body: bytes) -> None:
    answer = post(echo, body, "application/json")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html")
    assert "Bad Request" in answer.text


def test_sklearn_success_echoes_meta_and_escapes(rows: Server) -> None:
    body = '{"meta": {"uuid": "10eb0091"}, "data": {"req_data": [{"b": 1, "a": 2.5}]}}'
    answer = post(rows, body.encode(), "application/json")
    assert answer.status_code == 200
    assert answer.text == (
        '{"meta": {"uuid": "10eb0091"}, "data": {"resp_data": [{"row": [1, 2.5], "text": "\\u732b"}]}}'
    )
    assert post(rows, b'{"data": {"req_data": []}}').text == '{"data": {"resp_data": []}}'


def test_sklearn_body_is_not_json(rows: Server) -> None:
    answer = post(rows, b"nothing", "application/json")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")
    assert answer.json()["erno"] == "PY.0101"
    assert answer.json()["msg"] == "The input data is invalid"
    assert list(answer.json()) == ["erno", "msg", "error_info"]


@pytest.mark.parametrize(
    ("body", "status", "info"),
    [
        (b'{"data": {}}', 400, "KeyError: 'req_data'"),
        (b"[1]", 400, "TypeError: list indices must be integers or slices, not str"),
        (b'{"data": {"req_data": [{"a": "assert"}]}}', 500, "AssertionError: no row says assert"),
    ],
)
def test_sklearn_failures(rows: Server, body: bytes, status: int, info: str) -> None:
    answer = post(rows, body, "application/json")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.json() == {"erno": "PY.0105", "msg": "Predict failed", "error_info": info}
    rows.wait_log(info.partition(":")[0])


def test_get_is_the_page(echo: Server) -> None:
    answer = echo.client.get("/")
    assert answer.status_code == 200
    assert "modelarts_echo" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "status"), [("PUT", "/", 405), ("GET", "/nothing", 404), ("POST", "/x", 404)]
)
def test_other_methods_and_paths_get_the_frameworks_page(echo: Server, method: str, path: str, status: int) -> None:
    answer = echo.client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html")
    assert f"<title>{status} " in answer.text


# 2.4 What data is

LIST = {"type": "list", "items": [{"type": "int", "value": 1}]}
PARSED: list[tuple[str, dict[str, Any], Any]] = [
    ("json object", {"json": {"a": 1, "b": [1.5, None]}}, fields(("a", {"type": "int", "value": 1}), (
        "b", {"type": "list", "items": [{"type": "float", "value": 1.5}, {"type": "NoneType", "value": None}]}))),
    ("json with charset", {"content": b'{"a": 1}', "headers": {"content-type": "application/json; charset=utf-8"}},
     fields(("a", {"type": "int", "value": 1}))),
    ("application/*+json", {"content": b'{"a": 1}', "headers": {"content-type": "application/vnd.x+json"}},
     fields(("a", {"type": "int", "value": 1}))),
    ("json list", {"json": [1, "x"]}, {"type": "list", "items": [{"type": "int", "value": 1}, text("x")]}),
    ("json number", {"json": 7}, {"type": "int", "value": 7}),
    ("json string", {"json": "x"}, text("x")),
    ("json true", {"json": True}, {"type": "bool", "value": True}),
    ("one file", {"files": {"images": ("cat.jpg", b"12345")}}, fields(("images", fields(("cat.jpg", file(b"12345")))))),
    ("several keys", {"files": {"image1": ("cat.jpg", b"1"), "image2": ("horse.jpg", b"2")}},
     fields(("image1", fields(("cat.jpg", file(b"1")))), ("image2", fields(("horse.jpg", file(b"2")))))),
    ("several files under one key", {"files": [("k", ("b.jpg", b"1")), ("k", ("a.jpg", b"2"))]},
     fields(("k", fields(("b.jpg", file(b"1")), ("a.jpg", file(b"2")))))),
    ("two files of one name", {"files": [("k", ("a.jpg", b"1")), ("k", ("a.jpg", b"22"))]},
     fields(("k", fields(("a.jpg", file(b"22")))))),
    ("text field", {"files": {"image": ("a.jpg", b"1")}, "data": {"min_score": "0.5"}},
     fields(("min_score", text("0.5")), ("image", fields(("a.jpg", file(b"1")))))),
    ("repeated text field", {"files": [("t", (None, "first")), ("t", (None, "second"))]}, fields(("t", text("first")))),
    ("text and file of one key", {"files": [("k", ("a.jpg", b"1")), ("k", (None, "text"))]},
     fields(("k", fields(("a.jpg", file(b"1")))))),
    ("file name with directories", {"files": {"k": ("../dir/a.jpg", b"1")}},
     fields(("k", fields(("../dir/a.jpg", file(b"1")))))),
    ("file name beyond ASCII", {"files": {"k": ("猫.jpg", b"1")}}, fields(("k", fields(("猫.jpg", file(b"1")))))),
    ("upload over 500 KB", {"files": {"k": ("a.bin", b"x" * 800_000)}},
     fields(("k", fields(("a.bin", file(b"x" * 16, 800_000)))))),
    ("urlencoded", {"data": {"a": ["1", "2"], "b": "x y&z"}}, fields(("a", text("1")), ("b", text("x y&z")))),
    ("json by curl -d", {"content": b'{"a":"100%"}', "headers": URLENCODED}, fields(("a", text("100%")))),
    ("json list by curl -d", {"content": b' [1]', "headers": URLENCODED}, LIST),
    ("json called a form of parts", {"content": b'{"a":"1"}', "headers": MULTIPART}, fields(("a", text("1")))),
    ("json called nothing", {"content": b'\n{"a":"1"}'}, fields(("a", text("1")))),
    ("json list called nothing", {"content": b"[1]"}, LIST),
    ("json by curl -d and a query", {"content": b'{"a":"1"}', "headers": URLENCODED, "params": {"a": "x"}},
     fields(("a", text("x")))),
    ("no json by curl -d", {"content": b'{"a":', "headers": URLENCODED}, fields(('{"a":', text("")))),
    ("a number by curl -d", {"content": b"7", "headers": URLENCODED}, fields(("7", text("")))),
    ("a form after a brace", {"content": b'{ }\r\n--x\r\nContent-Disposition: form-data; name="k"\r\n\r\n1\r\n--x--',
     "headers": MULTIPART}, fields(("k", text("1")))),
    ("query over json", {"json": {"a": 1, "b": 2}, "params": {"a": "x", "c": "y"}},
     fields(("a", text("x")), ("b", {"type": "int", "value": 2}), ("c", text("y")))),
    ("query in the place of a file", {"files": {"images": ("a.jpg", b"1")}, "params": {"images": "x"}},
     fields(("images", text("x")))),
]  # fmt: skip


@pytest.mark.document("modelarts.17", "modelarts.17b", "modelarts.19")
@pytest.mark.parametrize(("request_", "expected"), [row[1:] for row in PARSED], ids=[row[0] for row in PARSED])
def test_what_a_script_gets(echo: Server, request_: dict[str, Any], expected: Any) -> None:
    answer = echo.client.post("/", **request_)
    assert answer.status_code == 200, answer.text
    assert answer.json() == expected


def test_a_file_without_a_name_is_kept_under_the_empty_name(echo: Server) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="k"; filename=""\r\n\r\n12\r\n--x--\r\n'
    answer = post(echo, body, "multipart/form-data; boundary=x")
    assert answer.json() == fields(("k", fields(("", file(b"12")))))


UNUSABLE = [
    *((f"json {value}", value.encode(), "application/json", "") for value in ("{}", "[]", "null", "0", '""', "false")),
    ("text", b"hello", "text/plain", ""),
    ("bytes", b"\x00", "application/octet-stream", ""),
    ("picture", b"\x89PNG", "image/png", ""),
    ("json called text", b'{"a": 1}', "text/plain", ""),
    ("no json called nothing", b'{"a": 1', "", ""),
    ("a number called nothing", b"7", "", ""),
    ("an empty object called nothing", b"{}", "", ""),
    ("an empty object by curl -d", b"{}", URLENCODED["content-type"], ""),
    ("empty", b"", "", ""),
    ("query alone", b"", "", "?images=x"),
    ("empty json and a query", b"{}", "application/json", "?images=x"),
    ("form without parts", b"--x--\r\n", "multipart/form-data; boundary=x", ""),
    ("form without a boundary", b"--x--\r\n", "multipart/form-data", ""),
    (
        "form cut short",
        b'--x\r\nContent-Disposition: form-data; name="k"\r\n\r\n1',
        "multipart/form-data; boundary=x",
        "",
    ),
]


@pytest.mark.parametrize(("body", "kind", "query"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_mr_0101(echo: Server, body: bytes, kind: str, query: str) -> None:
    answer = post(echo, body, kind, query)
    assert (answer.status_code, answer.content) == (400, MR_0101)


@pytest.mark.parametrize("body", [b"[1]", b"7", b'"text"'])
def test_json_that_is_no_object_plus_a_query_is_an_uncaught_error(echo: Server, body: bytes) -> None:
    answer = post(echo, body, "application/json", "?a=1")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "text/html")
    assert "Internal Server Error" in answer.text


def test_raw_engines_get_the_body_as_bytes(rows: Server) -> None:
    for kind in ("application/json", "text/plain", ""):
        answer = post(rows, b' {"data": {"req_data": [{"x": 1}]}} ', kind, "?x=2")
        assert answer.json()["data"]["resp_data"][0]["row"] == [1]
    assert post(rows, b"").json()["erno"] == "PY.0101"


# Limits come before the platform's rows


def test_json_beyond_the_depth_limit(echo: Server, rows: Server) -> None:
    deep = b"[" * 100 + b"]" * 100
    assert post(echo, deep, "application/json").status_code == 400
    answer = post(rows, deep, "application/json")
    assert (answer.status_code, answer.json()["erno"]) == (400, "PY.0101")


def test_too_many_parts(echo: Server) -> None:
    answer = echo.client.post("/", files=[("k", (f"{number}", b"1")) for number in range(40)])
    assert (answer.status_code, answer.json()["error_code"]) == (413, "APIG.0201")


@pytest.mark.document("modelarts.01")
def test_the_gateways_words() -> None:
    with serving("modelarts_echo", "--timeout", "40ms", "--queue", "1", env={"PANGLOT_TOKEN": "secret"}) as server:
        answer = server.client.post("/", json={"a": 1})
        assert (answer.status_code, answer.json()["error_code"]) == (401, "APIG.0301")
        token = {"authorization": "Bearer secret", "x-timeout-ms": "0"}
        answer = server.client.post("/", json={"a": 1}, headers=token)
        assert (answer.status_code, answer.json()["error_code"]) == (504, "APIG.0203")
        assert server.client.get("/health").status_code == 200
        assert server.client.get("/").status_code == 401


def test_dev_says_why_in_a_header_and_on_the_page() -> None:
    with serving("modelarts_echo", "--dev") as server:
        answer = server.client.post("/", json={"raise": "KeyError"})
        assert answer.content == MR_0105
        assert answer.headers["x-panglot-error"] == "KeyError: 'why'"
        row = server.client.get(f"/status/{answer.headers['x-request-id']}")
        assert "in _preprocess" in row.text
        answer = post(server, b"x", "text/plain")
        assert answer.content == MR_0101
        assert "text/plain is not read" in answer.headers["x-panglot-error"]


def test_without_dev_nothing_of_the_script_reaches_a_client(echo: Server) -> None:
    answer = echo.client.post("/", json={"raise": "ValueError"})
    assert "x-panglot-error" not in answer.headers
    assert "why" not in answer.text


def test_dev_puts_the_traceback_into_error_info() -> None:
    with serving("modelarts_rows", "--dev") as server:
        info = post(server, b'{"data": {}}').json()["error_info"]
        assert "Traceback" in info
        assert "KeyError: 'req_data'" in info
        assert "panglot_worker/dialects/modelarts/__init__.py" not in info, "our own frames are left out"


def test_stages_are_timed(echo: Server) -> None:
    timing = echo.client.post("/", json={"a": 1}).headers["server-timing"]
    assert all(f"{stage};dur=" in timing for stage in ("decode", "preprocess", "inference", "postprocess", "encode"))


def test_openapi_says_what_is_taken(echo: Server) -> None:
    post_ = echo.client.get("/openapi.json").json()["paths"]["/"]["post"]
    assert set(post_["requestBody"]["content"]) == {"multipart/form-data", "application/json"}
    assert json.dumps(post_["responses"]).count("text/html") >= 1


def test_pages_of_allowed_origins_may_call() -> None:
    with serving("modelarts_echo", "--cors-origin", "http://example.com") as server:
        asked = {"origin": "http://example.com", "access-control-request-method": "POST"}
        answer = server.client.options("/", headers=asked)
        assert answer.headers["access-control-allow-origin"] == "http://example.com"
