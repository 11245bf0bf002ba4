"""Several requests on one connection, one behind the other, and `Expect: 100-continue`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.raw import post
from support.server import Server, serving, wait_until
from support.wire import Reply, Wire

LIMITS = ("--header-timeout", "2s", "--body-gap", "2s", "--body-rate-after", "2s", "--max-body", "2MiB")
EXPECT = "Expect: 100-continue"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("edge_echo", *LIMITS) as running:
        yield running
        wait_until(lambda: running.metric("panglot_request_memory_bytes") == 0)
        assert running.metric("panglot_requests_in_progress") == 0


def ask(**fields: object) -> bytes:
    return post(json.dumps(fields).encode())


def occupy(server: Server, client: Wire, gate: Path) -> None:
    """Keep the only worker busy until the gate is there; what comes later waits in the queue."""
    client.send(ask(id=0, gate=str(gate)))
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
    # A worker that has been busy for a few milliseconds is given nothing more.
    time.sleep(0.1)


def ids(replies: list[Reply]) -> list[object]:
    assert {reply.status for reply in replies} == {200}, replies[-1]
    return [json.loads(reply.body)["id"] for reply in replies]


def test_a_thousand_requests_are_answered_in_order(server: Server) -> None:
    """In order, whatever the pieces they arrive in, and closed at the limit of requests per connection."""
    requests = b"".join(ask(id=number) for number in range(1010))
    with Wire(server) as client:
        for start in range(0, len(requests), 30_011):
            client.send(requests[start : start + 30_011])
        replies = client.replies(1000)
        assert ids(replies) == list(range(1000))
        assert [reply.headers.get("connection") for reply in replies] == [None] * 999 + ["close"]
        assert client.wait_closed()
        assert client.data == b""


def test_the_limit_of_requests_per_connection_is_a_setting() -> None:
    with serving("edge_echo", "--max-requests-per-connection", "3") as server:
        for _ in range(2):
            with Wire(server) as client:
                client.send(*[ask(id=number) for number in range(5)], pause=0.05)
                assert ids(client.replies(3)) == [0, 1, 2]
                assert client.wait_closed()
                assert client.data == b""
        with Wire(server) as client:
            client.send(*[b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"] * 5, pause=0.05)
            assert [reply.status for reply in client.replies(3)] == [200] * 3
            assert client.wait_closed()


def test_what_waits_behind_a_slow_request_is_bounded(server: Server, tmp_path: Path) -> None:
    """While one request runs, the server soon stops reading what is behind it; nothing is lost by that."""
    gate = tmp_path / "gate"
    with Wire(server, patience=30) as client:
        client.send(ask(id=0, gate=str(gate)))
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
        client.socket.settimeout(1)
        body = b'{"id": 1, "padding": "' + b"x" * 100_000 + b'"}'
        sent = 0
        try:
            for _ in range(1000):
                client.socket.sendall(post(body))
                sent += 1
        except TimeoutError:
            pass
        assert sent < 500
        assert server.metric("panglot_request_memory_bytes") < 3_000_000
        gate.touch()
        assert ids(client.replies(1 + sent)) == [0] + [1] * sent


SLOW = {"sleep": 0.3}


def test_a_large_request_behind_two_others(server: Server) -> None:
    """A request whose body is still arriving while others are answered is read to its end."""
    large = ask(id=3, padding="x" * 300_000)
    with Wire(server) as client:
        client.send(ask(id=1, **SLOW) + ask(id=2, **SLOW) + large[:400])
        assert ids(client.replies(2)) == [1, 2]
        client.send(large[400:])
        assert ids([client.reply()]) == [3]


def test_a_request_cut_by_our_own_pause_is_not_slow(server: Server) -> None:
    """The server stops reading while requests wait; what it has not read cannot be late."""
    for cut in (20, -3):
        third = ask(id=3)
        with Wire(server) as client:
            client.send(ask(id=1, sleep=2.5) + ask(id=2) + third[:cut])
            assert ids(client.replies(2)) == [1, 2]
            client.send(third[cut:])
            assert ids([client.reply()]) == [3]


def test_many_requests_in_one_piece_are_not_one_large_head(server: Server) -> None:
    """However much arrives at once, only the bytes of one request count to its limits."""
    requests = b"".join(ask(id=number) for number in range(600))
    chunked = post(b'8\r\n{"id":1}\r\n', "Transfer-Encoding: chunked")
    for last, rest in ((ask(id=600)[:30], ask(id=600)[30:]), (chunked, b"0\r\n\r\n")):
        with Wire(server) as client:
            client.send(requests + last)
            assert ids(client.replies(600)) == list(range(600))
            time.sleep(0.2)
            client.send(rest)
            assert client.reply().status == 200


@pytest.mark.one_front("what one turn of the loop refuses, two loops may take")
def test_many_refusals_behind_one_answer(tmp_path: Path) -> None:
    """Requests that wait on one connection while the queue is full are refused one after the other, not nested."""
    gate, other = tmp_path / "gate", tmp_path / "other"
    with serving("edge_echo", "--queue", "1") as server, Wire(server) as client, Wire(server) as second:
        occupy(server, client, gate)
        client.send(b"".join(ask(id=number) for number in range(1, 600)))
        second.send(ask(id=-1, gate=str(other)))
        wait_until(lambda: server.metric("panglot_queue_length") == 1)
        gate.touch()
        assert ids([client.reply()]) == [0]
        time.sleep(0.2)
        other.touch()
        statuses = [reply.status for reply in client.replies(599)]
        assert set(statuses) == {200, 503}
        assert ids([second.reply()]) == [-1]
    assert "Traceback" not in server.log


def test_nothing_is_run_after_the_last_request_of_a_connection(tmp_path: Path) -> None:
    """What follows a request with `Connection: close` is neither run nor answered, even when that one is refused."""
    last = post(b'{"id": 1}', "Connection: close")
    with serving("edge_echo", "--queue", "1") as server:
        with Wire(server) as client:
            client.send(last + ask(id=2, say="nothing"))
            assert ids([client.reply()]) == [1]
            assert client.wait_closed()
        gate = tmp_path / "gate"
        with Wire(server) as first, Wire(server) as second, Wire(server) as client:
            occupy(server, first, gate)
            second.send(ask(id=0))
            wait_until(lambda: server.metric("panglot_queue_length") == 1)
            client.send(last + ask(id=2, say="nothing") + b"BROKEN")
            assert client.reply().status == 503
            assert client.wait_closed()
            assert client.data == b""
            gate.touch()
            assert ids([first.reply(), second.reply()]) == [0, 0]
    assert "heard nothing" not in server.log
    assert "Traceback" not in server.log


def test_nor_is_a_large_one_that_comes_whole_later(tmp_path: Path) -> None:
    """Half of its body is in shared memory when the answer that ends the connection is written."""
    with serving("body_digests", "--max-requests-per-connection", "1") as server, Wire(server) as client:
        gate = tmp_path / "gate"
        body = b'{"gate": "%s"}' % bytes(gate)
        client.send(post(body) + post(bytes(100_000))[:-50_000])
        server.wait_log("waits")
        wait_until(lambda: server.metric("panglot_request_memory_bytes") >= len(body) + 50_000)
        gate.touch()
        assert client.reply().status == 200
        client.send(bytes(50_000))
        assert client.wait_closed()
        assert client.data == b""
        wait_until(lambda: server.metric("panglot_request_memory_bytes") == server.metric("panglot_shared_bodies") == 0)
    assert "Traceback" not in server.log


# Expect: 100-continue


def test_a_body_that_will_be_refused_is_never_asked_for(server: Server) -> None:
    """413 comes without `100 Continue` and without a byte of the gigabyte that was announced."""
    with Wire(server) as client:
        client.send(post(b"", EXPECT, f"Content-Length: {1 << 30}"))
        refused = client.reply()
        assert (refused.status, refused.headers["connection"]) == (413, "close")
        assert client.wait_closed()


def test_the_body_is_asked_for_before_it_comes(server: Server) -> None:
    request = post(b'{"id": 5}', EXPECT)
    with Wire(server) as client:
        for _ in range(2):
            client.send(request[:-9])
            assert client.reply().status == 100
            assert client.is_silent()
            client.send(request[-9:])
            assert ids([client.reply()]) == [5]


def test_a_client_that_does_not_wait_is_served_as_well(server: Server) -> None:
    with Wire(server) as client:
        client.send(post(b'{"id": 5}', EXPECT))
        assert [reply.status for reply in client.replies(2)] == [100, 200]


@pytest.mark.parametrize("before", [1, 3])
def test_behind_slow_requests(server: Server, before: int) -> None:
    """The body is asked for only when all answers before it are written: `100` must not come between them."""
    request = post(b'{"id": 9}', EXPECT)
    with Wire(server) as client:
        client.send(b"".join(ask(id=number, **SLOW) for number in range(before)) + request[:-9])
        assert ids(client.replies(before)) == list(range(before))
        assert client.reply().status == 100
        client.send(request[-9:])
        assert ids([client.reply()]) == [9]


def test_on_a_route_that_is_not_the_scripts(server: Server) -> None:
    """A path that does not exist, or takes no POST, is refused without a wait for the body's time limit."""
    for path, status in (("/nowhere", 404), ("/v2/health/live", 405)):
        with Wire(server) as client:
            client.send(post(b"", EXPECT, "Content-Length: 2", path=path))
            assert client.reply().status == 100
            client.send(b"{}")
            assert client.reply().status == status
