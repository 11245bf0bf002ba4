"""Asynchronous inference: a request becomes a job, and its input may lie at an address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from support.server import Server, serving

PATH = "/endpoints/any-endpoint/async-invocations"
PREFIX = "X-Amzn-SageMaker-"
JSON = "application/json"


class Objects(BaseHTTPRequestHandler):
    """Stands for S3 behind presigned addresses: it has one object."""

    def do_GET(self) -> None:
        body = b'{"op": "sum", "values": [1, 2]}' if self.path == "/bucket/input.json" else b"no such key"
        self.send_response(200 if body.startswith(b"{") else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def objects() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Objects) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def ops(objects: str) -> Iterator[Server]:
    with serving("sagemaker_ops", "--url-allow", objects.partition("://")[2]) as server:
        yield server


def invoke(server: Server, content: str = "", **headers: str) -> httpx.Response:
    named = {PREFIX + name.replace("_", "-"): value for name, value in headers.items()}
    return server.client.post(PATH, content=content, headers=named)


def result(server: Server, accepted: httpx.Response) -> httpx.Response:
    """The answer of a job, once it has ended."""
    where = accepted.headers[PREFIX + "OutputLocation"]
    assert accepted.headers[PREFIX + "FailureLocation"] == where
    server.client.get(where.removesuffix("/result"), headers={"Prefer": "wait=30"}, timeout=60)
    return server.client.get(where)


@pytest.mark.document("sagemaker.34")
def test_the_input_lies_at_an_address(ops: Server, objects: str) -> None:
    accepted = invoke(
        ops, InputLocation=objects + "/bucket/input.json", Content_Type=JSON, Inference_Id="i-7", Accept=JSON
    )
    assert (accepted.status_code, accepted.json()) == (202, {"InferenceId": "i-7"})
    answer = result(ops, accepted)
    assert (answer.status_code, answer.json()) == (200, 12)


@pytest.mark.document("sagemaker.34")
def test_the_input_is_the_body_where_no_location_is_named(ops: Server) -> None:
    accepted = invoke(ops, '{"op": "about"}', Content_Type=JSON, RequestTTLSeconds="60", InvocationTimeoutSeconds="5")
    job = accepted.json()["InferenceId"]
    assert accepted.headers[PREFIX + "OutputLocation"] == f"/jobs/{job}/result"
    assert result(ops, accepted).json() == {"type": "str", "content_type": JSON, "length": 15}


@pytest.mark.document("sagemaker.34")
def test_what_fails_is_where_the_answer_would_be(ops: Server, objects: str) -> None:
    failed = result(ops, invoke(ops, json.dumps({"op": "raise", "text": "no way"}), Content_Type=JSON))
    assert (failed.status_code, failed.text) == (500, "no way")
    lost = result(ops, invoke(ops, InputLocation=objects + "/bucket/nothing", Content_Type=JSON))
    assert (lost.status_code, lost.text.startswith("InputLocation cannot be read")) == (500, True)
    assert ops.metric("panglot_worker_restarts_total") == 0


@pytest.mark.document("sagemaker.34")
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"InputLocation": "s3://bucket/input.json"}, "there is no S3 here"),
        ({"RequestTTLSeconds": "soon"}, "a whole number from 1 to 21600"),
        ({"RequestTTLSeconds": "1" * 5_000}, "a whole number from 1 to 21600"),
        ({"InvocationTimeoutSeconds": "4000"}, "a whole number from 1 to 3600"),
    ],
)
def test_what_cannot_become_a_job_is_refused(ops: Server, headers: dict[str, str], sentence: str) -> None:
    refused = invoke(ops, "{}", **headers)
    assert (refused.status_code, refused.json()["type"]) == (400, "BadRequestException")
    assert sentence in refused.json()["message"]
