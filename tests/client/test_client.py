"""`panglot.Client` and `AsyncClient`: what a program that calls a server notices."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from panglot import AsyncClient, CallError, Client
from support.server import Server, serving

SCRIPT = '''
import time

class BadRequest(ValueError):
    status = 422

def predict(request):
    """Do what the request says."""
    if not isinstance(request, dict):
        return {"bytes": len(request.bytes), "type": request.type}
    if "parts" in request:
        return parts(request["parts"])
    if request.get("do") == "raise":
        raise RuntimeError("a secret of the script")
    if "nap" in request:
        time.sleep(request["nap"])
    return {name: len(field.bytes) if hasattr(field, "bytes") else field for name, field in request.items()}

def parts(count):
    for number in range(count):
        if number == 7:
            raise RuntimeError("half-way")
        yield {"part": number}
'''
Asker = Callable[..., Any]


class Waiting:
    """An AsyncClient that is awaited at once, so that one suite runs over both clients."""

    def __init__(self, url: str, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = AsyncClient(url, **options)

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *exc: object) -> None:
        self.runner.run(self.client.close())
        self.runner.close()

    def __getattr__(self, name: str) -> Asker:
        method = getattr(self.client, name)
        return lambda *given, **values: self.runner.run(method(*given, **values))

    def stream(self, *given: Any, **values: Any) -> Iterator[Any]:
        return iter(self.runner.run(collected(self.client.stream(*given, **values))))

    def map(self, inputs: Iterable[Any], **options: Any) -> Iterator[Any]:
        return iter(self.runner.run(collected(self.client.map(inputs, **options))))


async def collected(parts: Any) -> list[Any]:
    return [part async for part in parts]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("called")
    (folder / "model.py").write_text(SCRIPT)
    with serving(folder, "--queue", "4") as running:
        yield running


@pytest.fixture(params=[Client, Waiting], ids=["Client", "AsyncClient"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_values_by_name_files_among_them(kind: Any, server: Server, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"12345")
    with kind(server.url) as client:
        assert client.predict(x=[1, 2.5], word="two") == {"x": [1, 2.5], "word": "two"}
        assert client.predict(image=picture, threshold=0.4) == {"image": 5, "threshold": "0.4"}
        assert client.predict(image=b"123", other=io.BytesIO(b"1234")) == {"image": 3, "other": 4}
        assert client.ask(picture) == {"bytes": 5, "type": "image/png"}
        assert client.ask(b"\x89PNG\r\n\x1a\n") == {"bytes": 8, "type": "image/png"}
        with picture.open("rb") as file:
            assert client.ask(file)["bytes"] == 5
        with pytest.raises(TypeError, match="not both"):
            client.ask({"x": 1}, y=2)


def test_connections_are_kept(kind: Any, server: Server) -> None:
    with kind(server.url) as client:
        client.ask({})
        before = server.metric("panglot_connections_total") or connections(server)
        for _ in range(5):
            client.ask({})
        assert (server.metric("panglot_connections_total") or connections(server)) == before


def connections(server: Server) -> int:
    """The server's open connections."""
    import psutil

    return sum(one.status == "ESTABLISHED" for one in psutil.Process(server.process.pid).net_connections("tcp"))


def test_an_error_has_status_code_and_request_id(kind: Any, server: Server) -> None:
    with kind(server.url) as client, pytest.raises(CallError) as failed:
        client.ask({"do": "raise"})
    error = failed.value
    assert (error.status, error.code) == (500, "script_error")
    assert error.request_id in str(error)
    assert "secret" not in str(error)
    server.wait_log(f"{error.request_id}")


def test_streams_iterate(kind: Any, server: Server) -> None:
    with kind(server.url) as client:
        assert list(client.stream({"parts": 3})) == [{"part": 0}, {"part": 1}, {"part": 2}]
        assert list(client.stream({"x": 1})) == [{"x": 1}]
        assert client.ask({"parts": 2}) == [{"part": 0}, {"part": 1}]
        with pytest.raises(CallError) as failed:
            list(client.stream({"parts": 9}))
    assert failed.value.code == "connection_lost"


def test_parts_come_before_the_stream_ends(server: Server) -> None:
    with Client(server.url) as client:
        parts = client.stream({"parts": 9})
        assert [next(parts)["part"] for _ in range(7)] == list(range(7))
        with pytest.raises(CallError):
            next(parts)


@pytest.mark.rest("a load for seconds")
def test_answers_to_many_inputs_come_in_their_order_though_the_queue_is_short(kind: Any, server: Server) -> None:
    """The queue holds four: the others are told 503 and to come back."""
    inputs = [{"nap": 0.02, "number": number} for number in range(40)]
    with kind(server.url) as client:
        answers = list(client.map(inputs, concurrency=16))
    assert [answer["number"] for answer in answers] == list(range(40))
    assert server.metric("panglot_requests_total", code="503") > 0 or "queue_full" in server.client.get("/metrics").text


def test_a_failure_stands_in_its_place_or_is_raised(kind: Any, server: Server) -> None:
    inputs = [{"x": 1}, {"do": "raise"}, {"x": 3}]
    with kind(server.url) as client:
        first, failed, last = client.map(inputs, return_errors=True)
        assert (first, last) == ({"x": 1}, {"x": 3})
        assert isinstance(failed, CallError)
        with pytest.raises(CallError):
            list(client.map(inputs))


def test_a_deadline_is_kept(kind: Any, server: Server) -> None:
    with kind(server.url, timeout=2) as client, pytest.raises(CallError) as failed:
        client.ask({"nap": 4})
    assert failed.value.code == "timeout"


def test_a_server_that_is_not_there(kind: Any) -> None:
    with kind("http://127.0.0.1:9", connect_timeout=0.2) as client, pytest.raises(CallError) as failed:
        client.ask({})
    assert failed.value.code == "no_connection"
    assert "Connection refused" in str(failed.value)
    with pytest.raises(ValueError, match="no address of a server"):
        kind("127.0.0.1:8080")


def test_a_name_that_means_nothing_is_not_tried_again(kind: Any) -> None:
    with kind("http://panglot.invalid", connect_timeout=30) as client, pytest.raises(CallError) as failed:
        client.ask({})
    assert failed.value.code == "no_connection"


def test_tokens(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("function", env={"PANGLOT_TOKEN": "secret"}) as server:
        with kind(server.url) as client, pytest.raises(CallError, match="wants a token") as failed:
            client.ask({"x": 1})
        assert failed.value.status == 401
        with kind(server.url, token="secret") as client:
            assert client.ask({"x": 1}) is not None
        monkeypatch.setenv("PANGLOT_TOKEN", "secret")
        with kind(server.url) as client:
            assert client.ask({"x": 1}) is not None
