"""A bug of the server itself costs the request it met: 500 and a traceback in the log, no worker, no connection."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.raw import post, talk
from support.server import Server, serving, wait_until

SCRIPT = """
import os
from panglot import ClientError

def predict(request):
    if request == "refuse":
        raise ClientError("no tea")
    if request == "raise":
        raise RuntimeError("script")
    return os.getpid()

"""
STREAM = """
def predict(request):
    yield 1
    yield 2
    yield 3
"""
BUGS = """
import sys

if "serve" in sys.orig_argv:
    from panglot.engine.engine import LocalEngine
    from panglot.engine.pools import pool
    from panglot.web.http1.heads import request_head as head
    from panglot.web.http1.exchange import Exchange

    def bug(owner, name, when, after=False):
        \"\"\"Makes a method of the server raise for requests whose id says so.\"\"\"
        right = getattr(owner, name)

        def wrong(self, *arguments, **more):
            request_id = getattr(self, "request_id", b"") or getattr(self, "given_id", b"")
            for argument in arguments:
                request_id = getattr(argument, "request_id", request_id)
            hit = callable(request_id) or when in request_id
            if hit and not after:
                raise ZeroDivisionError("a bug of the server: " + name)
            result = right(self, *arguments, **more)
            if hit:
                raise ZeroDivisionError("a bug of the server: " + name)
            return result

        setattr(owner, name, wrong)

    bug(Exchange, "_send", b"bug-send")
    bug(Exchange, "_script_failed", b"bug-script")
    bug(Exchange, "_open_stream", b"bug-open")
    bug(Exchange, "_done", b"bug-done", after=True)
    bug(LocalEngine, "submit", b"bug-submit")
    bug(LocalEngine, "submit", b"bug-late-submit", after=True)

    def chunk(self, body, right=Exchange._chunk):
        if b"bug-chunk" in self.request_id and b"2" in bytes(body):
            raise ZeroDivisionError("a bug of the server: chunk")
        return right(self, body)

    Exchange._chunk = chunk

    def timeout(self, limits, right=head.RequestHead.timeout):
        if b"bug-parser" in self.given_id:
            raise ZeroDivisionError("a bug of the server: parser")
        return right(self, limits)

    head.RequestHead.timeout = timeout

    def note(worker, event, *more):
        raise ZeroDivisionError("a bug of the server: event")

    pool.note = note
"""


@pytest.fixture(scope="module")
def bugs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("bugs")
    (folder / "sitecustomize.py").write_text(BUGS)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, bugs: dict[str, str]) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("package")
    (folder / "model.py").write_text(SCRIPT)
    with serving(folder, env=bugs) as running:
        yield running


def ask(server: Server, value: object, request_id: str) -> httpx.Response:
    return server.predict(value, headers={"x-request-id": request_id}, timeout=10)


@pytest.mark.parametrize(
    ("request_id", "value"),
    [
        ("bug-send", 1),
        ("bug-send", "refuse"),
        ("bug-script", "raise"),
        ("bug-submit", 1),
        ("bug-late-submit", 1),
        ("bug-parser", 1),
    ],
)
def test_the_request_gets_500_and_the_worker_lives(server: Server, request_id: str, value: object) -> None:
    pid, line = ask(server, 1, "fine").json(), len(server.lines)
    answer = ask(server, value, request_id)
    assert answer.status_code == 500
    assert answer.json()["error"] == {
        "code": "internal_error",
        "message": "the server itself failed on this request; its log says why",
        "request_id": request_id,
    }
    server.wait_log(r"(?s)the server itself failed on.*Traceback.*ZeroDivisionError: a bug of the server", after=line)
    assert [ask(server, 1, "fine").json() for _ in range(3)] == [pid] * 3
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
    assert server.metric("panglot_request_memory_bytes") == 0
    assert server.metric("panglot_worker_restarts_total") == 0


def test_an_answer_that_is_written_is_not_written_twice(server: Server) -> None:
    pid = ask(server, 1, "fine").json()
    heard = talk(server, post(b"1", "x-request-id: bug-done"))
    assert heard.statuses == [200]
    assert heard.data.endswith(str(pid).encode())
    server.wait_log("request bug-done: the server itself failed on it")
    assert ask(server, 1, "fine").json() == pid
    assert server.metric("panglot_request_memory_bytes") == 0


def test_requests_behind_it_on_the_connection_are_not_left_hanging(server: Server) -> None:
    sent = post(b"1", "x-request-id: bug-send") + post(b"1", "x-request-id: after")
    heard = talk(server, sent)
    assert heard.statuses[0] == 500
    assert heard.closed
    assert server.metric("panglot_request_memory_bytes") == 0


@pytest.mark.parametrize("request_id", ["bug-open", "bug-chunk"])
def test_an_answer_in_parts(tmp_path: Path, bugs: dict[str, str], request_id: str) -> None:
    (tmp_path / "model.py").write_text(STREAM)
    with serving(tmp_path, env=bugs) as server:
        heard = talk(server, post(b"1", f"x-request-id: {request_id}"))
        assert heard.closed
        assert heard.statuses == ([500] if request_id == "bug-open" else [200])
        assert not heard.data.endswith(b"0\r\n\r\n"), "the client must notice"
        server.wait_log("a bug of the server")
        assert server.predict(1).text.count("data:") >= 3
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        assert server.metric("panglot_worker_restarts_total") == 0


def test_an_event_that_cannot_be_noted_costs_no_worker(tmp_path: Path, bugs: dict[str, str]) -> None:
    script = "class Model:\n    def predict_batch(self, items):\n        assert len(items) == 1\n        return items\n"
    (tmp_path / "model.py").write_text(script)
    flags = ("--max-wait-ms", "2000", "--max-batch", "2")
    with serving(tmp_path, *flags, env=bugs) as server, ThreadPoolExecutor(2) as clients:
        assert list(clients.map(lambda number: server.predict(number).json(), (1, 2))) == [1, 2]
        server.wait_log(r"(?s)an event of worker 0 could not be noted.*ZeroDivisionError: a bug of the server: event")
        assert server.predict(1).json() == 1
        assert server.metric("panglot_worker_restarts_total") == 0
