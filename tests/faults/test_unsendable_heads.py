"""Answers whose content type or headers HTTP cannot carry: 500 for that request alone, and a line in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw import post
from support.server import Server, serving
from support.wire import Reply, Wire

SCRIPT = """
import gc

from panglot_worker.line.port import Port

PORT = next(thing for thing in gc.get_objects() if isinstance(thing, Port))
send = PORT.reply
spoilt = {}


def reply(*replies):
    send(*(reply._replace(**spoilt) for reply in replies))


PORT.reply = reply


def predict(item):
    spoilt.clear()
    if "head" in item:
        spoilt["head"] = item["head"].encode("latin-1")
    if "status" in item:
        spoilt["status"] = item["status"]
    return parts() if item.get("op") == "stream" else item


def parts():
    while True:
        yield "part"
"""
JSON = "application/json"
UNSENDABLE = {
    "two lines in one": (f"{JSON}\0x-one: 1\r\nx-two: 2", "a line of its headers is none"),
    "a line feed": (f"{JSON}\0x-one: 1\nx-two: 2", "a line of its headers is none"),
    "the end of the head": (f"{JSON}\0x-one: 1\r\n\r\nHTTP/1.1 200 OK", "a line of its headers is none"),
    "no name": (f"{JSON}\0: 1", "a line of its headers is none"),
    "no colon": (f"{JSON}\0x-one", "a line of its headers is none"),
    "a space in the name": (f"{JSON}\0x one: 1", "a line of its headers is none"),
    "a folded line": (f"{JSON}\0 x-one: 1", "a line of its headers is none"),
    "a line of 9,000 letters": (f"{JSON}\0x-one: " + 9000 * "x", "a line of its headers is none"),
    "another length": (f"{JSON}\0Content-Length: 3", "is the server's own to set"),
    "another framing": (f"{JSON}\0transfer-encoding: chunked", "is the server's own to set"),
    "a second type": (f"{JSON}\0content-type: text/html", "is the server's own to set"),
    "a type with a line end": ("text/html\r\nx-one: 1", "its content type cannot be sent"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("package")
    (folder / "model.py").write_text(SCRIPT)
    with serving(folder) as running:
        yield running
        assert running.metric("panglot_worker_restarts_total") == 0
        assert running.metric("panglot_requests_in_progress") == 0
    assert "Traceback" not in running.log


def ask(client: Wire, item: object) -> Reply:
    client.send(post(json.dumps(item).encode()))
    return client.reply()


def test_heads_that_can_be_sent(server: Server) -> None:
    """Letters of Latin-1 arrive as they were given, and the case of names."""
    with Wire(server) as client:
        answer = ask(client, {"head": "text/x-café; charset=utf-8\0X-One: é, ü\0x-two:\0x-three: a:b"})
        assert answer.status == 200
        got = {name: answer.headers[name] for name in ("content-type", "x-one", "x-two", "x-three")}
        assert got == {"content-type": "text/x-café; charset=utf-8", "x-one": "é, ü", "x-two": "", "x-three": "a:b"}


@pytest.mark.parametrize("op", ["", "stream"])
@pytest.mark.parametrize(("head", "said"), UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_heads_that_would_break_the_answer(server: Server, head: str, said: str, op: str) -> None:
    mark = len(server.lines)
    with Wire(server) as client:
        answer = ask(client, {"head": head, "op": op})
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (500, "bad_result")
        server.wait_log(f"request {answer.headers['x-request-id']}: .*{said}", after=mark)
        assert ask(client, {"id": 1}).body == b'{"id":1}', "the connection is out of step"
        assert not client.data


@pytest.mark.parametrize(("status", "said"), [(100, "status 100 ends no request"), (204, "status 204 has a body")])
def test_statuses_that_would_break_the_answer(server: Server, status: int, said: str) -> None:
    mark = len(server.lines)
    with Wire(server) as client:
        assert ask(client, {"status": status}).status == 500
        server.wait_log(said, after=mark)
        assert ask(client, {"id": 1}).body == b'{"id":1}'


MOSEC = """
import mosec

import tiinfer


class Answers(mosec.Worker):
    resp_mime_type = "text/猫"

    def forward(self, data):
        return data

    def serialize(self, data):
        return b"meow"


tiinfer.append_worker(Answers%s)
"""


@pytest.mark.parametrize("more", ["", ", max_batch_size=4"])
def test_a_content_type_beyond_latin_1_costs_its_request_alone(tmp_path: Path, more: str) -> None:
    (tmp_path / "model_service.py").write_text(MOSEC % more)
    with serving(tmp_path, "--dialect", "tiinfer") as server:
        for _ in range(2):
            answer = server.client.post("/inference", json=1)
            assert answer.status_code == 500
        server.wait_log(r"EncodeError: a content type or header is not Latin-1: 'text/猫'")
        assert server.metric("panglot_worker_restarts_total") == 0
