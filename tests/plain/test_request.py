"""What a script may ask about its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.server import Server, panglot, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("heads") as started:
        yield started


def test_request_tells_what_the_head_says(server: Server) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = [("X-Request-Id", "mine"), ("X-Tag", "a"), ("x-tag", "b"), ("Cookie", "c=1"), ("traceparent", trace)]
    headers.append(("X-Timeout-Ms", "9000"))
    answer = server.client.post("/predict?top=3&tag=x&tag=y%20z&none=", json=1, headers=headers)
    told = answer.json()["request"]
    assert (told["id"], told["path"], told["client"], told["traceparent"]) == ("mine", "/predict", "127.0.0.1", trace)
    assert told["query"] == {"top": "3", "tag": ["x", "y z"], "none": ""}
    assert (told["headers"]["x-tag"], told["headers"]["cookie"]) == ("a, b", "c=1")
    assert told["headers"]["content-type"] == "application/json"
    assert 0 < told["deadline"] <= 9


def test_every_stage_knows_its_own_request(server: Server) -> None:
    answer = server.predict("a", headers={"x-request-id": "one"}).json()
    assert (answer["item"][1], answer["request"]["id"], answer["after"]) == ("one", "one", "one")


def test_nothing_of_it_can_be_changed(server: Server) -> None:
    assert server.predict("write").status_code == 500
    server.wait_log("'mappingproxy' object does not support item assignment")


def test_a_batch_has_its_requests_in_order(server: Server) -> None:
    def ask(number: int) -> httpx.Response:
        headers = {"x-request-id": f"id-{number}", "x-number": str(number)}
        return server.client.post("/together", json=number, headers=headers)

    with ThreadPoolExecutor(16) as many:
        answers = [answer.json() for answer in many.map(ask, range(48))]
    assert answers == [[number, f"id-{number}", str(number)] for number in range(48)]
    assert server.client.post("/together", json="wrong", headers={"x-number": "1"}).status_code == 500
    server.wait_log("a function that takes batches has several requests")


def test_a_stream_knows_its_request_to_its_end(server: Server) -> None:
    answer = server.client.post("/words", json=1, headers={"x-request-id": "s"})
    assert answer.text == 'data: "s"\n\n' * 3


def test_tasks_know_their_own_request(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import asyncio\nimport panglot\n\nasync def predict(item):\n    before = panglot.request().id\n"
        "    await asyncio.sleep(0.02)\n    return [before, panglot.request().id, panglot.request().headers['x-a']]\n"
    )
    with serving(tmp_path) as server:

        def ask(number: int) -> httpx.Response:
            return server.predict(number, headers={"x-request-id": f"id-{number}", "x-a": str(number)})

        with ThreadPoolExecutor(8) as many:
            answers = [answer.json() for answer in many.map(ask, range(24))]
    assert answers == [[f"id-{number}", f"id-{number}", str(number)] for number in range(24)]


def test_a_helper_module_may_ask_too(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import helper\n\ndef predict(item):\n    return helper.agent()\n")
    (tmp_path / "helper.py").write_text("from panglot import request\n\ndef agent(): return request().headers['x-a']\n")
    with serving(tmp_path) as server:
        assert server.predict(1, headers={"x-a": "1"}).json() == "1"


def test_scripts_that_do_not_ask_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import importlib\nrequest = getattr(importlib.import_module('panglot'), 'request')\n\n"
        "def predict(item):\n    return request().id if item else dict(request().headers)\n"
    )
    with serving(tmp_path) as server:
        assert server.predict(1, headers={"x-request-id": "a"}).json() == "a"
        assert server.predict(0).status_code == 500
        server.wait_log("write `from panglot import request` in the script itself")


def test_outside_of_a_request_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from panglot import request\nfirst = request()\n\ndef predict(item):\n    return 1\n"
    )
    done = panglot("serve", str(tmp_path), "--port", "0")
    assert done.returncode == 3
    assert "model.py:2: importing model.py failed: RuntimeError: there is no request here" in done.stderr


def test_inline_tells_the_same(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from panglot import request\n\ndef predict(item):\n    return request().headers['x-a']\n"
    )
    with serving(tmp_path, "--inline") as server:
        assert json.loads(server.predict(1, headers={"x-a": "1"}).text) == "1"
