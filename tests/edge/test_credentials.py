"""The tokens and cookies of this server end in the front: no script finds one, by whatever protocol it was asked."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.rpc import Rpc
from support.server import Server, serving

TOKEN, METRICS = "a secret of/many+letters=", "for-scraping-alone"
RIGHT = {"authorization": f"Bearer {TOKEN}"}
SCRIPT = """
import os

from panglot import request


def headers():
    try:
        return dict(request().headers)
    except RuntimeError:  # Calls of gRPC have none.
        return {}


def predict(item):
    with open(f"/proc/{os.getppid()}/environ", "rb") as file:
        front = file.read().decode()
    return {"headers": headers(), "own": dict(os.environ), "front": front}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    script = tmp_path_factory.mktemp("curious") / "model.py"
    script.write_text(SCRIPT)
    tokens = {"PANGLOT_TOKEN": TOKEN, "PANGLOT_METRICS_TOKEN": METRICS, "INNOCENT": "yes"}
    with serving(script.parent, "--grpc-port", "0", env=tokens) as started:
        yield started


def told(server: Server, **headers: str) -> dict[str, str]:
    answer = httpx.post(f"{server.url}/predict", json=1, headers={**RIGHT, "x-other": "stays", **headers}, timeout=30)
    assert answer.status_code == 200, answer.text
    assert TOKEN not in answer.text
    found: dict[str, str] = answer.json()["headers"]
    assert found["x-other"] == "stays"
    return found


def test_the_token_is_not_among_the_headers_of_a_request(server: Server) -> None:
    found = told(server)
    assert "authorization" not in found
    assert found["content-type"] == "application/json"


def test_it_is_not_there_when_the_same_head_comes_again(server: Server) -> None:
    with server.new_client() as client:
        for _ in range(3):
            assert TOKEN not in client.post("/predict", json=1, headers=RIGHT).text


def test_an_authorization_beside_the_right_one_ends_here_too(server: Server) -> None:
    """Of several lines the last is looked at, and any of them may be meant for us."""
    body = b"1"
    lines = [f"Authorization: Bearer {METRICS}", f"Authorization: Bearer {TOKEN}", "Host: localhost", "X-Other: stays"]
    head = "\r\n".join(["POST /predict HTTP/1.1", *lines, "Connection: close", f"Content-Length: {len(body)}", "", ""])
    with socket.create_connection(("127.0.0.1", server.port), 20) as connection:
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 200")
    assert "stays" in answer
    assert TOKEN not in answer
    assert METRICS not in answer


@pytest.mark.parametrize("value", [TOKEN, f"Token {TOKEN}", f'key="{TOKEN}"', METRICS])
def test_a_token_in_another_header_is_not_passed_on(server: Server, value: str) -> None:
    assert "x-api-key" not in told(server, **{"x-api-key": value})


def test_a_token_as_the_password_of_http_basic_is_not_passed_on(server: Server) -> None:
    given = "Basic " + base64.b64encode(f"user:{METRICS}".encode()).decode()
    assert "proxy-authorization" not in told(server, **{"proxy-authorization": given})


def test_of_the_cookies_only_that_of_a_login_is_cut_out(server: Server) -> None:
    session = httpx.post(f"{server.url}/login", headers=RIGHT, timeout=30).headers["set-cookie"].partition(";")[0]
    assert told(server, cookie=f"theme=dark; {session}; lang=en")["cookie"] == "theme=dark; lang=en"
    assert "cookie" not in told(server, cookie=session)
    other_servers = "panglot_0123abcd=1999999999.feed"
    assert told(server, cookie=f"{other_servers};theme=dark")["cookie"] == "theme=dark"


def test_a_page_of_a_browser_that_has_logged_in_gives_its_cookie_to_no_script(server: Server) -> None:
    session = httpx.post(f"{server.url}/login", headers=RIGHT, timeout=30).headers["set-cookie"].partition(";")[0]
    own = {"cookie": session, "origin": server.url, "authorization": "Bearer of-somebody"}
    answer = httpx.post(f"{server.url}/predict", json=1, headers=own, timeout=30)
    assert answer.status_code == 200
    assert not {"cookie", "authorization"} & set(answer.json()["headers"])


def test_neither_is_it_in_requests_with_tensors(server: Server) -> None:
    name = server.client.post("/v2/repository/index", headers=RIGHT).json()[0]["name"]
    tensor = {"name": "input", "datatype": "BYTES", "shape": [1], "data": ["1"]}
    answer = httpx.post(f"{server.url}/v2/models/{name}/infer", json={"inputs": [tensor]}, headers=RIGHT, timeout=30)
    found = json.loads(answer.json()["outputs"][0]["data"][0])
    assert found["headers"]["host"]
    assert TOKEN not in answer.text
    assert "authorization" not in found["headers"]
    rpc = Rpc(server, token=TOKEN)
    request = rpc.tensors(name, input=[b"1"])
    assert TOKEN not in str(rpc.call("ModelInfer", request))


def test_neither_a_worker_nor_whoever_reads_the_fronts_environment_finds_a_token(server: Server) -> None:
    answer: dict[str, Any] = httpx.post(f"{server.url}/predict", json=1, headers=RIGHT, timeout=30).json()
    assert answer["own"]["INNOCENT"] == "yes"
    assert not any("TOKEN" in name for name in answer["own"])
    assert "INNOCENT=yes" in answer["front"].split("\0")
    assert TOKEN not in answer["front"]
    assert METRICS not in answer["front"]


def test_without_a_token_of_ours_an_authorization_is_the_scripts_own(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path, env={"PANGLOT_METRICS_TOKEN": METRICS}) as server:
        assert told(server, authorization="Bearer of-the-script")["authorization"] == "Bearer of-the-script"
        assert "authorization" not in told(server, authorization=f"Bearer {METRICS}")
        # A request of HTTP/1.0 that has no other header at all.
        with socket.create_connection(("127.0.0.1", server.port), 20) as connection:
            connection.sendall(b"POST /predict HTTP/1.0\r\nContent-Length: 1\r\n\r\n1")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
