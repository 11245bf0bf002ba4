"""Scripts that take the HTTP request itself, in an interpreter without Flask; with Flask: test_side_by_side.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import azureml
from support.azureml import write
from support.server import Server, serving

RAW = "from azureml_inference_server_http.api.aml_request import AMLRequest, rawhttp\n"
SURFACE = f"""
{RAW}
from azureml_inference_server_http.api.aml_response import AMLResponse

def init():
    pass

@rawhttp
def anything():
    "The decorator marks the whole script, wherever it stands."

def run(req):
    assert isinstance(req, AMLRequest.__mro__[1])
    if req.args.get("stream"):
        return {{"stream": req.stream.read().decode(), "data": req.get_data(as_text=True)}}
    return {{
        "method": req.method, "args": req.args.to_dict(flat=False), "number": req.args.get("n", type=int),
        "path": req.path, "full_path": req.full_path, "url": req.url.partition("/score")[1],
        "type": req.content_type, "length": req.content_length, "is_json": req.is_json,
        "silent": req.get_json(silent=True), "forced": req.get_json(force=True),
        "data": req.data.decode(), "text": req.get_data(as_text=True),
        "header": req.headers.get("x-odd"), "listed": req.headers.getlist("X-ODD"), "has": "X-Odd" in req.headers,
        "cookie": req.cookies.get("a"), "repr": repr(req).startswith("<Request "),
    }}
"""

SPOILING = f"""
{RAW}
def init():
    pass

@rawhttp
def run(req, request_headers):
    seen = [req.environ.get("spoilt"), request_headers.get("Spoilt"), req.headers.get("Host") is not None]
    req.environ["spoilt"] = request_headers["Spoilt"] = "yes"
    req.environ.pop("HTTP_HOST")
    request_headers.clear()
    found = None
    try:
        from flask import g, request, url_for
        found = [request.path, g.get("spoilt"), request.endpoint, dict(request.view_args), url_for("handle_score")]
        g.spoilt = request.view_args["spoilt"] = "yes"
    except ImportError:
        pass
    return {{"seen": seen, "flask": found, "data": req.get_data(as_text=True)}}
"""


@pytest.mark.document("azureml.15", "azureml.16")
def test_every_method_reaches_the_script(raw: Server) -> None:
    assert raw.client.get("/score?x=1").content == b"/score?x=1"
    asked = raw.client.options("/score")
    assert (asked.text, asked.headers["allow"]) == ("asked", "GET, POST")
    assert raw.client.put("/score").status_code == 405


@pytest.mark.document("azureml.22")
def test_uploads_and_forms(raw: Server) -> None:
    files = [("file[]", ("a.txt", b"first", "text/plain")), ("file[]", ("b.png", b"second", "image/png"))]
    answer = raw.client.post("/score", files=files, data={"note": "n"}).json()
    assert answer == {
        "files": [
            {"name": "a.txt", "type": "text/plain", "size": 5},
            {"name": "b.png", "type": "image/png", "size": 6},
        ],
        "form": {"note": "n"},
    }
    assert raw.client.post("/score", data={"a": "1"}).json() == {"form": {"a": "1"}, "data": ""}


@pytest.mark.document("azureml.22")
def test_bytes_and_json(raw: Server) -> None:
    answer = raw.client.post("/score", content=b"\x00\xff", headers={"content-type": "image/jpeg"})
    assert (answer.content, answer.headers["content-type"], answer.headers["x-length"]) == (
        b"\xff\x00",
        "image/jpeg",
        "2",
    )
    assert raw.client.post("/score", json={"a": 1}).json() == {"json": {"a": 1}, "agent": True, "path": "/score"}
    failed = raw.client.post("/score", json={})
    assert (failed.status_code, failed.text, failed.headers["x-ms-run-function-failed"]) == (500, "bad request", "True")


@pytest.mark.document("azureml.46")
def test_server_sent_events(raw: Server) -> None:
    with raw.client.stream("POST", "/score", headers={"content-type": "text/event-stream"}) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.read() == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_what_the_request_has(tmp_path: Path) -> None:
    with serving(write(tmp_path, SURFACE)) as server:
        headers = [("X-Odd", "1"), ("Cookie", "a=b; c=d"), ("Content-Type", "text/plain")]
        answer = server.client.post("/score?n=7&m=1&m=2", content="[1]", headers=headers).json()
        assert answer == {
            "method": "POST", "args": {"n": ["7"], "m": ["1", "2"]}, "number": 7,
            "path": "/score", "full_path": "/score?n=7&m=1&m=2", "url": "/score",
            "type": "text/plain", "length": 3, "is_json": False, "silent": None, "forced": [1],
            "data": "[1]", "text": "[1]", "header": "1", "listed": ["1"], "has": True, "cookie": "b", "repr": True,
        }  # fmt: skip
        assert server.client.post("/score?stream=1", content="abc").json() == {"stream": "abc", "data": ""}
        chunked = server.client.post("/score?n=1", content=iter([b"[", b"2]"])).json()
        assert (chunked["data"], chunked["length"]) == ("[2]", None)


def test_a_large_upload_is_whole(raw: Server) -> None:
    """Bodies of this size lie in memory that is shared with the worker."""
    answer = raw.client.post("/score", content=b"ab" * 100_000, headers={"content-type": "image/jpeg"})
    assert answer.content == b"ba" * 100_000


def test_tensors_are_the_body_of_a_raw_request(raw: Server) -> None:
    tensor = {"name": "input", "datatype": "BYTES", "shape": [1], "data": ["hello"]}
    answer = raw.client.post("/v2/models/azureml_raw/infer", json={"inputs": [tensor]})
    assert answer.json()["outputs"][0]["data"] == ["olleh"]


@pytest.mark.parametrize("flask", [False, pytest.param(True, marks=pytest.mark.rest("Flask in an environment"))])
def test_what_a_script_does_to_its_request_does_not_reach_the_next(tmp_path: Path, flask: bool) -> None:
    """The head of a request that comes again is read once; all that the script may change is made anew."""
    flags = ["--python", azureml.python()] if flask else []
    of_flask = ["/score", None, "handle_score", {}, "/score"] if flask else None
    with serving(write(tmp_path, SPOILING), "--workers", "1", *flags) as server:
        ids = set()
        for text in ("one", "two", "six"):
            answer = server.client.post("/score", content=text)
            assert answer.json() == {"seen": [None, None, True], "flask": of_flask, "data": text}
            ids.add(answer.headers["x-ms-request-id"])
        assert len(ids) == 3
