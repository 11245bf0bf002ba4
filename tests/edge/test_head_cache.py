"""A head that a client sends again need not be parsed again: nothing of that can be noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Wire


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("edge_echo", "--request-memory", "1MiB", "--max-body", "100kB") as running:
        yield running
        wait_until(lambda: running.metric("panglot_request_memory_bytes") == 0)


def answers(client: Wire, *requests: bytes) -> list[object]:
    """The ids that come back, each request being sent when the one before is answered."""
    found = []
    for request in requests:
        client.send(request)
        reply = client.reply()
        assert reply.status == 200, reply
        found.append(json.loads(reply.body)["id"])
    return found


def test_each_body_gets_its_own_answer_whatever_the_heads(server: Server) -> None:
    with Wire(server) as client:
        bodies = [b"%d" % number for number in (10, 11, 12, 13, 100, 101, 14, 102, 103, 15)]
        assert answers(client, *map(post, bodies)) == [int(body) for body in bodies]
        mixed = [post(b"%d" % number, *(("X-A: b",) if number % 3 else ())) for number in range(10, 40)]
        assert answers(client, *mixed) == list(range(10, 40))


def test_bytes_that_look_like_another_request_do_not_confuse_it(server: Server) -> None:
    with Wire(server) as client:
        odd = [b'  "\\r\\n"  ', b"\r\n\r\n  7\r\n ", b"\r\n\r\n  8\r\n ", b'"POST / HTTP/1.1"'.ljust(10)]
        heard = answers(client, *[post(body) for body in odd for _ in range(3)])
        assert heard == [value for value in ("\r\n", 7, 8, "POST / HTTP/1.1") for _ in range(3)]
        for _ in range(3):
            assert answers(client, post(b"42") + b"\r\n", post(b"\r\n43"), post(b"44")) == [42, 43, 44]


def test_pieces_and_pipelines_of_the_same_head(server: Server) -> None:
    with Wire(server) as client:
        assert answers(client, *[post(b"11")] * 4) == [11] * 4
        request = post(b"12")
        client.send(request[:-1])
        client.send(request[-1:], pause=0.05)
        assert json.loads(client.reply().body)["id"] == 12
        client.send(post(b"13") * 5 + post(b"14")[:20])
        assert [json.loads(reply.body)["id"] for reply in client.replies(5)] == [13] * 5
        client.send(post(b"14")[20:] + post(b"15"))
        assert [json.loads(reply.body)["id"] for reply in client.replies(2)] == [14, 15]
        assert answers(client, *[post(b"16")] * 4) == [16] * 4


def test_a_cut_head_behind_a_request_does_not_become_the_head_of_its_like(server: Server) -> None:
    """The length in the cut head says: all behind the first blank line is one body."""
    with Wire(server) as client:
        # The first read of a connection is not looked at.
        assert answers(client, post(b"1", "X-First: yes")) == [1]
        head = post(b"7".ljust(100), "X-Cut: here")
        cut = head[: head.index(b"here")]
        body = b"7".ljust(len(b"42") + len(cut))
        assert len(body) > 99, "the same number of digits"
        cut = cut.replace(b" 100", b" %d" % len(body))
        client.send(post(b"42") + cut)
        assert json.loads(client.reply().body)["id"] == 42
        client.send(b"here\r\n\r\n" + body)
        assert json.loads(client.reply().body)["id"] == 7
        further = post(b"44", "X-Padding: " + "x" * len(cut))
        client.send(post(b"43") + further[: len(cut)])
        assert json.loads(client.reply().body)["id"] == 43
        client.send(further[len(cut) :])
        assert json.loads(client.reply().body)["id"] == 44


def test_ids_deadlines_and_limits_are_those_of_each_request(tmp_path: Path) -> None:
    with serving("edge_echo", "--max-requests-per-connection", "6") as server:
        gate = tmp_path / "gate"
        with Wire(server) as client:
            ids, bodies = [], [json.dumps({"id": n, "gate": str(gate) if n == 3 else ""}).encode() for n in range(4)]
            longest = max(map(len, bodies))
            for body in bodies:
                client.send(post(body.ljust(longest), "X-Timeout-Ms: 700"))
                reply = client.reply()
                ids.append(reply.headers["x-request-id"])
            assert reply.status == 504
            assert len(set(ids)) == 4
            gate.touch()
            for _ in range(2):
                client.send(post(b"1"))
                reply = client.reply()
                assert reply.status == 200
            assert reply.headers["connection"] == "close"
            assert client.wait_closed()
        with Wire(server) as client:
            client.send(post(b"1", "X-Request-Id: mine"))
            first = client.reply()
            for _ in range(3):
                client.send(post(b"1", "X-Request-Id: mine"))
                assert client.reply().headers["x-request-id"] == first.headers["x-request-id"] == "mine"
