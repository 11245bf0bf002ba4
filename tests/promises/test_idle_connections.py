"""The promise: idle connections lock nobody out; the longest idle makes way for a newcomer."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from support.raw import post
from support.server import serving, wait_until
from support.wire import Wire, accepted

GOOD = post(b"7")
LIMIT = ("--max-connections", "8")


def test_the_longest_idle_makes_way() -> None:
    with serving("function", *LIMIT) as server, contextlib.ExitStack() as stack:
        server.client.close()
        wait_until(lambda: accepted(server) == 0)
        idle = [stack.enter_context(Wire(server)) for _ in range(8)]
        for client in idle:
            client.send(GOOD)
            assert client.reply().status == 200
            time.sleep(0.01)
        idle[0].send(GOOD)
        assert idle[0].reply().status == 200
        # Four: two fronts have every second connection each, and each of them closes its two longest idle.
        newcomers = [stack.enter_context(Wire(server)) for _ in range(4)]
        for client in newcomers:
            client.send(GOOD)
            assert client.reply().status == 200
        assert [client.wait_closed() for client in idle[1:5]] == [True] * 4
        for client in (idle[0], *idle[5:], *newcomers):
            client.send(GOOD)
            assert client.reply().status == 200


def test_a_crowd_of_newcomers_is_served_beside_idle_ones() -> None:
    """Ten times as many as there is room for, one after the other, each staying open."""
    with serving("function", *LIMIT) as server, contextlib.ExitStack() as stack:
        server.client.close()
        wait_until(lambda: accepted(server) == 0)
        for _ in range(80):
            client = stack.enter_context(Wire(server))
            client.send(GOOD)
            assert client.reply().status == 200
        server.client = server.new_client()
        assert server.metric("panglot_connections_refused_total", limit="idle") >= 72


def test_who_waits_for_an_answer_is_not_idle(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving("edge_echo", *LIMIT, "--workers", "8") as server, contextlib.ExitStack() as stack:
        server.client.close()
        wait_until(lambda: accepted(server) == 0)
        clients = [stack.enter_context(Wire(server)) for _ in range(8)]
        for client in clients:
            client.send(post(json.dumps({"say": "hello", "gate": str(gate)}).encode()))
        wait_until(lambda: server.log.count("heard hello") == 8)
        newcomer = stack.enter_context(Wire(server))
        newcomer.send(GOOD)
        assert newcomer.reply().status == 503
        gate.touch()
        assert [client.reply().status for client in clients] == [200] * 8
        late = stack.enter_context(Wire(server))
        late.send(GOOD)
        assert late.reply().status == 200
        server.client = server.new_client()
        wait_until(lambda: server.client.get("/v2/health/live").status_code == 200)
