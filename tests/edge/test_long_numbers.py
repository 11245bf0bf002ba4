"""Numbers of thousands of digits, wherever a request may have one: a refusal, never an error of ours."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.raw import talk
from support.server import Server, serving

DIGITS = "1" * 5_000
TENSOR = {"inputs": [{"name": "input", "datatype": "BYTES", "shape": [1], "data": ["1"]}]}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("function") as started:
        yield started
    assert "Traceback" not in started.log


@pytest.mark.parametrize("digits", [DIGITS, "0" * 5_000, "9" * 19])
def test_a_length_of_the_json_of_tensors(server: Server, digits: str) -> None:
    url = f"{server.url}/v2/models/function/infer"
    answer = httpx.post(url, json=TENSOR, headers={"inference-header-content-length": digits}, timeout=30)
    assert answer.status_code == 400
    assert "Inference-Header-Content-Length" in answer.json()["error"]


@pytest.mark.parametrize("name", ["Content-Length", "X-Timeout-Ms"])
def test_a_length_or_a_time(server: Server, name: str) -> None:
    length = "" if name == "Content-Length" else "Content-Length: 1\r\n"
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\n{name}: {DIGITS}\r\n{length}\r\n1"
    assert 400 <= talk(server, head.encode()).status < 500
