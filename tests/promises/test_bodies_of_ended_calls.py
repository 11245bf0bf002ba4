"""The promise: a body goes when its call ends, wherever that was, and the gauge counts what is held."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Wire

MIB = 1 << 20
BODY = b" " * 16 * MIB + b"7"
POSTS = 24


@contextlib.contextmanager
def busy(server: Server, gate: Path) -> Iterator[None]:
    """The only worker is occupied, and one live call is at the head of the queue, until the gate is there."""
    with Wire(server, patience=30) as first, Wire(server, patience=30) as second:
        for client in (first, second):
            client.send(post(b'{"gate": "%s", "id": 1}' % str(gate).encode()))
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 2)
        yield
        gate.touch()
        assert [client.reply().status for client in (first, second)] == [200, 200]


def memory(server: Server) -> int:
    return psutil.Process(server.process.pid).memory_info().rss


def test_bodies_of_expired_calls_go_at_once(tmp_path: Path) -> None:
    with serving("edge_echo", "--workers", "1", "--queue-bytes", "4GiB", "--request-memory", "4GiB") as server:
        with busy(server, tmp_path / "gate"):
            before = memory(server)
            for _ in range(POSTS):
                late = server.predict(content=BODY, headers={"content-type": "application/json", "x-timeout-ms": "1"})
                assert late.status_code == 504
            assert server.metric("panglot_request_memory_bytes") < MIB
            assert memory(server) - before < 6 * len(BODY)
        assert server.metric("panglot_request_memory_bytes") == 0


def test_bodies_of_cancelled_calls_go_at_once(tmp_path: Path) -> None:
    flags = ("--workers", "1", "--queue-bytes", "4GiB", "--request-memory", "4GiB")
    with serving("edge_echo", *flags) as server, busy(server, tmp_path / "gate"):
        before = memory(server)
        for number in range(POSTS):
            with Wire(server) as client:
                client.send(post(BODY))
                wait_until(lambda: server.metric("panglot_queue_length") >= 1)
            wait_until(lambda number=number: server.metric("panglot_dropped_total", reason="disconnected") > number)
        wait_until(lambda: server.metric("panglot_request_memory_bytes") < MIB)
        assert memory(server) - before < 6 * len(BODY)


def test_many_ended_calls_behind_a_live_one_cost_nothing(tmp_path: Path) -> None:
    """Their places in the queue are given up too."""
    with serving("edge_echo", "--workers", "1") as server, Wire(server, patience=30) as client:
        request = post(b'{"padding": "%s"}' % (b"x" * 1000), "X-Timeout-Ms: 0")

        def expire(count: int) -> None:
            for _ in range(count // 100):
                client.send(request * 100)
                assert {reply.status for reply in client.replies(100)} == {504}

        with busy(server, tmp_path / "gate"):
            expire(500)
            before = memory(server)
            with contextlib.ExitStack() as stack:
                for _ in range(9):
                    client = stack.enter_context(Wire(server, patience=30))
                    expire(900)
            assert memory(server) - before < 8 * MIB


def test_the_gauge_counts_what_is_between_two_pools() -> None:
    """A body makes way for what the first pool made of it; none of it is counted once the call is answered."""
    pools = ("--pools", "preprocess=1,inference=1,postprocess=1")
    with serving("row_script", *pools) as server:
        for number in range(5):
            answer = server.predict({"id": number, "size": 10, "padding": "x" * MIB})
            assert answer.status_code == 200, answer.text
            assert server.metric("panglot_request_memory_bytes") == 0
            assert server.predict({"id": number, "size": 100_000}).status_code == 200
            assert server.metric("panglot_request_memory_bytes") == 0
