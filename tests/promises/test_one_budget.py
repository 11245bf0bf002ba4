"""The promise: limits on bytes and connections are those of the server, however many ports it listens on."""

from __future__ import annotations

import contextlib
import re
from types import SimpleNamespace

from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Wire, accepted

MIB = 1 << 20
PORTS = re.compile(r"listening on http://\S+:(\d+) too")


def doors(server: Server) -> list[SimpleNamespace]:
    """All ports of a server with three."""
    server.wait_count(" too", 2)
    return [SimpleNamespace(port=port) for port in (server.port, *map(int, PORTS.findall(server.log)))]


def test_bytes_are_counted_over_all_ports() -> None:
    flags = ("--request-memory", "16MiB", "--body-gap", "60s", "--body-rate", "0")
    with serving("megflow_servers", *flags) as server, contextlib.ExitStack() as stack:
        first, *others = doors(server)
        assert len(others) == 2
        large = post(b" " * 10 * MIB, "Content-Length: 11000000", path="/analyze/bytes")
        stack.enter_context(Wire(first)).send(large)
        wait_until(lambda: server.metric("panglot_request_memory_bytes") >= 10 * MIB)
        for door in others:
            client = stack.enter_context(Wire(door))
            client.send(large)
            assert client.reply().status == 503


def test_connections_are_counted_over_all_ports() -> None:
    with serving("megflow_servers", "--max-connections", "12", "--header-timeout", "60s") as server:
        server.client.close()
        wait_until(lambda: accepted(server) == 0)
        with contextlib.ExitStack() as stack:
            for door in doors(server) * 4:
                stack.enter_context(Wire(door))
            wait_until(lambda: accepted(server) == 12)
            for door in doors(server):
                client = stack.enter_context(Wire(door))
                client.send(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.reply().status == 503
                client = stack.enter_context(Wire(door))
                client.send(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.reply().status == 200
        server.client = server.new_client()
        wait_until(lambda: server.client.get("/openapi.json").status_code == 200)
