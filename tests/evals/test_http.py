"""The platform's HTTP contract, row by row: paths, content types, shapes of requests and answers, URIs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from support.evals import GOOD, ask, data_uri, group, package, result, returning, single
from support.server import Server, serving

JSON = "application/json"


def post(server: Server, content: bytes, content_type: str, path: str = "/v1/eval") -> Any:
    headers = {"content-type": content_type} if content_type else {}
    return server.client.post(path, content=content, headers=headers)


# POST /v1/eval

TYPES = {
    "application/json": 200,
    "application/json; charset=UTF-8": 200,
    "application/json; charset=utf-8": 200,
    "application/json; charset=latin-1": 400,
    "text/plain": 400,
    "application/x-www-form-urlencoded": 400,
    "nonsense": 400,
    "": 400,
}


@pytest.mark.parametrize("content_type", TYPES)
def test_content_types(rows: Server, content_type: str) -> None:
    answer = post(rows, json.dumps(single()).encode(), content_type)
    assert answer.status_code == TYPES[content_type]
    if answer.status_code == 400:
        assert answer.json() == {"error": "wrong content type"}


@pytest.mark.document("evals.17", "evals.19")
def test_a_single_request(rows: Server) -> None:
    answer = ask(rows, single(b"picture", {"case": "echo", "x": 1}, attribute={"a": 2}))
    assert answer.headers["content-type"] == JSON
    value = answer.json()
    assert (value["code"], value["message"]) == (0, "")
    assert value["result"]["body"] == ["picture"]
    assert value["result"]["uri"][0].startswith("/")
    assert value["result"]["attribute"] == [{"a": 2}]
    assert value["result"]["params"] == {"case": "echo", "x": 1}
    assert value["result"]["group"] is False


@pytest.mark.document("evals.23")
def test_a_group_larger_than_batch_size_is_refused(rows: Server) -> None:
    assert result(rows, group(b"1", b"2", b"3", b"4"))["body"] == ["1", "2", "3", "4"]
    too_many = group(b"1", b"2", b"3", b"4", b"5")
    refused = (400, {"error": "eval request out of batch_size 4"})
    for answer in (
        ask(rows, too_many),
        ask(rows, [group(b"1"), too_many], "/v1/batch"),
        rows.client.post("/v1/eval", files=[("file", b"x")] * 5),
    ):
        assert (answer.status_code, answer.json()) == refused
    # A list of single requests is no group: it is cut into calls.
    assert len(ask(rows, [single()] * 9, "/v1/batch").json()) == 9


@pytest.mark.document("evals.06")
def test_batch_size_1_means_single_pictures(tmp_path: Path) -> None:
    with serving(package(tmp_path, returning(GOOD % "len(req['data'])"))) as server:
        assert ask(server, single()).status_code == 200
        assert result(server, group(b"1")) == 1
        answer = ask(server, group(b"1", b"2"))
        assert (answer.status_code, answer.json()) == (400, {"error": "eval request out of batch_size 1"})


def test_a_null_result_is_left_out(rows: Server) -> None:
    answer = ask(rows, single(params={"case": "result", "result": "none"}))
    assert answer.json() == {"code": 0, "message": ""}


def test_a_body_is_sent_raw(rows: Server) -> None:
    answer = ask(rows, single(params={"case": "body"}))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/octet-stream")
    assert answer.content == b"\x00\x01raw"
    assert answer.headers["content-length"] == "5"


@pytest.mark.document("evals.22")
def test_a_group_is_200_whatever_its_code(rows: Server) -> None:
    params = {"case": "rets", "ret": {"code": 424, "message": "no", "result": {}}}
    answer = ask(rows, group(b"one", b"two", params=params))
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (200, 424, "no")
    seen = result(rows, group(b"one", b"two"))
    assert (seen["group"], seen["body"]) == (True, ["one", "two"])


def test_a_group_loses_its_body_and_keeps_whole_call_errors(rows: Server) -> None:
    assert ask(rows, group(b"x", params={"case": "body"})).json()["result"] == {"lost": True}
    answer = ask(rows, group(b"x", params={"case": "whole", "code": 400, "message": "bad group"}))
    assert (answer.status_code, answer.json()) == (400, {"error": "bad group"})


def test_octets_are_a_single_request(rows: Server) -> None:
    """The original answered 200 with nothing: an unfinished stub."""
    answer = post(rows, b"raw picture", "application/octet-stream")
    assert answer.json()["result"]["body"] == ["raw picture"]


def test_an_upload(rows: Server) -> None:
    one = rows.client.post("/v1/eval", files={"file": ("a.jpg", b"one")}, data={"params": '{"k": 1}'})
    assert one.json()["result"]["body"] == ["one"]
    assert one.json()["result"]["params"] == {"k": 1}
    many = [("file", ("a.jpg", b"one")), ("other", ("b.jpg", b"two"))]
    two = rows.client.post("/v1/eval", files=many, data={"attribute": '{"side": "left"}'})
    assert two.json()["result"]["body"] == ["one", "two"]
    assert two.json()["result"]["attribute"] == [{"side": "left"}] * 2
    for fields in ({"params": "{"}, {"other": "1"}):
        assert rows.client.post("/v1/eval", files=many, data=fields).status_code == 400


def test_inline_base64(rows: Server) -> None:
    """Promised by the platform's document, never done there."""
    seen = result(rows, {"data": {"body": base64.b64encode(b"inline").decode()}})
    assert seen["body"] == ["inline"]
    assert ask(rows, {"data": {"body": "no base64!"}}).status_code == 400


UNREADABLE = (
    b"", b"{", b"[]", b"7", b"null", b'"x"', b"{}", b'{"data":null}', b'{"data":7}', b'{"data":[]}', b'{"data":{}}',
    b'{"data":{"uri":""}}', b'{"data":{"uri":7}}', b'{"data":[{"uri":""}]}', b'{"data":[7]}', b'{"data":{"body":7}}',
    b'{"data":{"uri":"data:,"}, "params":NaN}', b'{"data":' + b"[" * 100 + b"]" * 100 + b"}",
)  # fmt: skip


@pytest.mark.parametrize("body", UNREADABLE)
def test_what_cannot_be_read(rows: Server, body: bytes) -> None:
    answer = post(rows, body, JSON)
    assert (answer.status_code, answer.json()) == (400, {"error": "parse task request failed"})


def test_op_is_ignored(rows: Server) -> None:
    assert ask(rows, {**single(), "op": "/v1/eval/other"}).status_code == 200


# POST /v1/batch


@pytest.mark.document("evals.29")
def test_a_batch(rows: Server) -> None:
    rets = [{"code": 0, "message": "", "result": 1}, {"code": 415, "message": "bad", "result": {}}]
    value = [single(params={"case": "rets", "ret": ret}) for ret in rets]
    answer = ask(rows, value, "/v1/batch")
    assert answer.status_code == 200
    assert answer.json() == rets
    assert ask(rows, [group(b"a"), group(b"b")], "/v1/batch").json()[1]["result"]["group"] is True


def test_a_batch_loses_bodies_and_fails_as_a_whole(rows: Server) -> None:
    assert ask(rows, [single(params={"case": "body"})], "/v1/batch").json()[0]["result"] == {"lost": True}
    answer = ask(rows, [single(params={"case": "whole", "code": 424, "message": "all of it"})], "/v1/batch")
    assert (answer.status_code, answer.json()) == (424, {"error": "all of it"})


def test_an_empty_batch(rows: Server) -> None:
    answer = ask(rows, [], "/v1/batch")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("body", [b"{", b"{}", b"[7]", b"[{}]"])
def test_a_batch_that_cannot_be_read(rows: Server, body: bytes) -> None:
    assert post(rows, body, JSON, "/v1/batch").status_code == 400


def test_singles_and_groups_do_not_mix(rows: Server) -> None:
    """The original's handler died of it, and the connection with it."""
    assert ask(rows, [single(), group(b"a")], "/v1/batch").status_code == 400


# Other routes


@pytest.mark.parametrize("path", ["/V1/EVAL", "/v1/Eval", "/v1/eval"])
def test_paths_have_no_case(rows: Server, path: str) -> None:
    assert ask(rows, single(), path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/eval/", "/v1/eval/x", "/v1", "/eval"])
def test_paths_have_their_number_of_segments(rows: Server, path: str) -> None:
    assert ask(rows, single(), path).status_code == 404


def test_health(rows: Server) -> None:
    answer = rows.client.get("/health")
    assert (answer.status_code, answer.text) == (200, "ok rows")


def test_configs_without_secrets(rows: Server) -> None:
    text = rows.client.get("/configs").text
    release = json.loads(text)["release"]
    assert release["batch_size"] == 4
    assert release["custom_params"] == {"threshold": 0.5, "api_key": "***"}
    assert "not to be shown" not in text


def test_the_request_id_comes_back(rows: Server) -> None:
    assert ask(rows, single(), headers={"x-reqid": "from-me_1="}).headers["x-reqid"] == "from-me_1="
    made = ask(rows, single()).headers
    assert made["x-reqid"]
    assert made["x-reqid"] == made["x-request-id"]
    assert ask(rows, {}, headers={"x-reqid": "bad-task"}).headers["x-reqid"] == "bad-task"


def test_what_scripts_measure_is_exported(rows: Server) -> None:
    ask(rows, single())
    text = rows.client.get("/metrics").text
    labels = 'method="py.forward",error="NIL",number="1"'
    assert f'ava_serving_eval_response_time_bucket{{{labels},le="0.01"}} 0' in text
    count = rows.metric("ava_serving_eval_response_time_count", number="1")
    assert count >= 1
    assert rows.metric("ava_serving_eval_response_time_bucket", number="1", le="0.02") == count
    assert rows.metric("ava_serving_eval_response_time_sum", number="1") == pytest.approx(0.015 * count)


def test_the_api_is_documented(rows: Server) -> None:
    from openapi_spec_validator import validate

    document = rows.client.get("/openapi.json").json()
    validate(document)
    content = document["paths"]["/v1/eval"]["post"]["requestBody"]["content"]
    assert set(content) == {"application/json", "multipart/form-data", "application/octet-stream"}
    assert {"/v1/batch", "/health", "/configs"} <= set(document["paths"])


# 2.3: URIs

URIS = {
    "ftp://example.org/a": (599, "not supported"),
    "qiniu://bucket/a": (599, "not supported"),
    "sts://x": (599, "not supported"),
    "HTTP://example.org/": (599, "not supported"),
    "just text": (599, "not supported"),
    "/etc/passwd": (599, "not supported"),
    "data:application/octet-stream;base64,%%%": (599, "bad data uri"),
    "data:application/octet-stream;base64,aGVsbG8": (599, "bad data uri"),
    "data:application/octet-stream;base64,aGVs bG8=": (599, "bad data uri"),
    "data:application/octet-stream,hello": (599, "bad data uri"),
    "data:": (599, "bad data uri"),
    "file:///etc/passwd": (599, "the uri cannot be read"),
    "file://eval.py": (599, "the uri cannot be read"),
    "http://127.0.0.1:1/": (599, "the uri cannot be read"),
    "http://name.invalid/": (599, "the uri cannot be read"),
}


@pytest.mark.parametrize("uri", URIS)
def test_uris_that_lead_nowhere(rows: Server, uri: str) -> None:
    status, message = URIS[uri]
    answer = ask(rows, {"data": {"uri": uri}})
    assert (answer.status_code, answer.json()) == (status, {"error": message})


def test_data_of_any_type(rows: Server) -> None:
    uri = data_uri(b"hello").replace("application/octet-stream", "image/png")
    assert result(rows, {"data": {"uri": uri}})["body"] == ["hello"]
    assert result(rows, {"data": {"uri": data_uri(b"")}})["body"] == [""]


def test_the_first_uri_that_fails_fails_the_call(rows: Server) -> None:
    answer = ask(rows, [single(), {"data": {"uri": "ftp://x"}}], "/v1/batch")
    assert (answer.status_code, answer.json()) == (599, {"error": "not supported"})


@pytest.mark.document("evals.20")
def test_uri_and_body(rows: Server) -> None:
    """Both: the body; neither: 400; the attribute as the platform's document misspells it."""
    both = {"data": {"uri": "ftp://nowhere", "body": base64.b64encode(b"inline").decode()}}
    assert result(rows, both)["body"] == ["inline"]
    assert ask(rows, {"data": {"attribute": {}}}).status_code == 400
    misspelt = {"data": {"uri": data_uri(), "atrribute": {"a": 1}}}
    assert result(rows, misspelt)["attribute"] == [{"a": 1}]


def test_faults_of_the_server_are_worded_alike() -> None:
    with serving("evals_rows", "--max-body", "200") as server:
        answer = ask(server, single(b"x" * 500))
        assert answer.status_code == 413
        assert set(answer.json()) == {"error"}
        assert answer.headers["x-reqid"]
