"""Clients that read more slowly than a decoupled model sends: it waits for them, unless others wait for it too long."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support import environments
from support.descent import children
from support.models import all_of
from support.rpc import address
from support.server import Server, serving, wait_until
from support.wire import Wire

PARTS = 150
"""Of 100 kB each: more than the server keeps of a stream."""
ENDLESS = 1_000_000
PATH = "/v2/models/parts/generate"
MUCH = 128 * 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = all_of(Path(__file__).parent / "slow")
    with serving(folder, "--slow-reader", "1s", "--grpc-port", "0", ready=False) as started:
        started.wait_ready()
        yield started


def begin(server: Server, how: str, count: int, model: str = "parts") -> Wire:
    """A client that asks for a stream, and has read the first bytes of it."""
    client = Wire(server, receive_buffer=4096, patience=60)
    body = json.dumps({"HOW": how, "COUNT": count}).encode()
    lines = f"POST /v2/models/{model}/generate_stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    client.send(lines.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert client.read()
    return client


def cut_off(server: Server) -> float:
    models = ("parts", "forwarding", "staged")
    return sum(
        server.metric("panglot_connections_refused_total", limit="stream_backlog", model=name) for name in models
    )


def memory_of(server: Server) -> int:
    """Bytes that the server and its workers have."""
    front = psutil.Process(server.process.pid)
    return sum(process.memory_info().rss for process in (front, *children(front, recursive=True)))


def read_to_the_end(client: Wire) -> list[int]:
    """The numbers of all parts. Fails where the stream was cut off."""
    while not client.data.endswith(b"\r\n0\r\n\r\n"):
        assert client.read(), "it was cut off"
    return [int(number) for number in re.findall(rb'"PART":"(\d+) x', client.data)]


@pytest.mark.parametrize("how", ["thread", "execute", "shared"])
def test_a_model_waits_for_its_client(how: str, server: Server) -> None:
    before = cut_off(server)
    with begin(server, how, PARTS) as client:
        # Whoever sends from a thread of the request alone holds up nobody.
        others = 5 if how == "thread" else 0
        for _ in range(others):
            answer = server.client.post(PATH, json={"HOW": "execute", "COUNT": 1})
            assert answer.json()["PART"].startswith("0 x")
        assert read_to_the_end(client) == list(range(PARTS))
    assert cut_off(server) == before


@pytest.mark.parametrize("model", ["forwarding", "staged"])
def test_a_model_that_forwards_a_stream_waits_too_and_so_does_the_one_behind_it(model: str, server: Server) -> None:
    """Nothing piles up: neither in the server, nor in the model or the ensemble that forwards."""
    before = cut_off(server)
    with begin(server, "thread", 4 * PARTS, model) as client:
        assert read_to_the_end(client) == list(range(4 * PARTS))
    memory, mark = memory_of(server), len(server.lines)
    with begin(server, "thread", ENDLESS, model):
        for _ in range(20):
            time.sleep(0.1)
            assert memory_of(server) - memory < MUCH
    server.wait_log("cancelled", after=mark)
    assert cut_off(server) == before


def test_an_ensemble_that_waits_for_a_client_answers_others(server: Server) -> None:
    before, until = cut_off(server), time.monotonic() + 3
    with begin(server, "thread", ENDLESS, "staged"):
        # Long enough that the stream stands still, and that a client which holds up others would have lost it.
        while time.monotonic() < until:
            answer = server.client.post("/v2/models/staged/generate", json={"HOW": "thread", "COUNT": 1})
            assert answer.json()["PART"].startswith("0 x")
    assert cut_off(server) == before


@pytest.mark.parametrize("model", ["forwarding", "staged"])
def test_a_stream_that_its_caller_does_not_take_is_bounded(model: str, server: Server) -> None:
    """The model behind waits no longer, because others need its thread; the client still reads nothing."""
    before, memory = cut_off(server), memory_of(server)
    with begin(server, "shared", ENDLESS, model):

        def is_broken_off() -> bool:
            answer = server.client.post(PATH, json={"HOW": "shared", "COUNT": 1}, timeout=60)
            assert answer.json()["PART"].startswith("0 x")
            assert memory_of(server) - memory < 4 * MUCH
            return cut_off(server) == before + 1

        wait_until(is_broken_off, 60)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", ["parts", "staged"])
def test_a_model_waits_for_nvidias_client(model: str, server: Server) -> None:
    python = environments.python_with("tritonclient-2.73", "tritonclient[http,grpc]==2.73.0")
    command = [python, str(Path(__file__).parent / "clients" / "slow.py"), address(server), model]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["execute", "shared"])
def test_a_client_that_does_not_read_holds_up_others_for_a_while(how: str, server: Server) -> None:
    before = cut_off(server)
    with begin(server, how, ENDLESS) as client:

        def others_are_answered() -> bool:
            answer = server.client.post(PATH, json={"HOW": how, "COUNT": 1}, timeout=60)
            assert answer.json()["PART"].startswith("0 x")
            return cut_off(server) == before + 1

        wait_until(others_are_answered, 60)
        assert client.wait_closed(60)
        assert not client.data.endswith(b"0\r\n\r\n"), "it looks as if it were complete"


@pytest.mark.parametrize("how", ["thread", "execute"])
def test_a_model_that_waits_learns_that_its_client_has_left(how: str, server: Server) -> None:
    mark = len(server.lines)
    begin(server, how, ENDLESS).close()
    server.wait_log("cancelled", after=mark)
    assert server.client.post(PATH, json={"HOW": "execute", "COUNT": 1}).status_code == 200
