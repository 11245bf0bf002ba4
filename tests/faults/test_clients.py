"""Clients that leave, streams that break, and errors that are the client's own."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

import httpx
import pytest

from support.after import measure, unharmed
from support.pool import Lend
from support.server import Server, serving, wait_until
from support.traffic import Gate, answers, ask_all, occupy, rounds, send

NORMAL, EXPECTED = {"id": 1}, {"id": 1, "twice": 2}
SINGLE, BATCH, OVERLAPPING, STREAM = (
    f"fault_script/{name}.py" for name in ("single", "batch", "overlapping", "stream")
)
PARTS = ['data: {"id":4,"part":0}', 'data: {"id":4,"part":1}']
QUICK = ("--restart-delay", "0.1", "--restart-delay-max", "0.2")


def connect(server: Server, value: object) -> socket.socket:
    """A client that has sent its whole request."""
    body = json.dumps(value).encode()
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return client


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_disconnect_while_queued(script: str, tmp_path: Path, lend: Lend) -> None:
    """The request of a client that left is never executed and frees its place at once."""
    with lend(script, "--slots", "1", *QUICK) as server:
        for number, _ in enumerate(rounds(1, 10)):
            with unharmed(server, NORMAL, EXPECTED):
                ask_all(server, [{"id": id} for id in range(20)])
                gate = Gate(tmp_path / str(number))
                plug = occupy(server, gate, 4)
                gone = [connect(server, {"id": id, "op": "note", "padding": "x" * 10_000}) for id in range(50, 60)]
                wait_until(lambda: server.metric("panglot_requests_in_progress") == 11)
                for client in gone:
                    client.close()
                wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
                assert server.metric("panglot_queue_bytes") == 0
                gate.open()
                assert answers(server, [plug])[0].json() == {"id": 4, "twice": 8}
                assert ask_all(server, [{"id": 60, "op": "note"}])[0].status == 200
                server.wait_log("item 60 was executed")
                assert "item 5" not in server.log


def test_disconnect_before_a_blocked_async_worker_began(tmp_path: Path) -> None:
    """Requests that reach an async worker together with their cancellation give their slots back."""
    with serving(OVERLAPPING, "--slots", "4", *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        for number in range(3):
            gate = Gate(tmp_path / str(number))
            mark = len(server.lines)
            plug = send(server, {**gate.holding(4), "op": "block"})
            server.wait_log("item 4 waits", after=mark)
            gone = [connect(server, {"id": id, "op": "note"}) for id in range(50, 53)]
            wait_until(lambda: server.metric("panglot_requests_in_progress") == 4)
            for client in gone:
                client.close()
            wait_until(lambda: server.metric("panglot_requests_in_progress") == 1)
            gate.open()
            assert answers(server, [plug])[0].json() == {"id": 4, "twice": 8}
    assert "item 5" not in server.log


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_disconnect_while_running(script: str, tmp_path: Path) -> None:
    """A client that leaves while its request runs disturbs nobody, and leaves no traceback in the log."""
    with serving(script, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        gate = Gate(tmp_path / "gate")
        client = connect(server, gate.holding(4))
        server.wait_log("item 4 waits")
        client.close()
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        gate.open()
        answered = ask_all(server, [{"id": id} for id in range(10, 14)])
        assert [answer.json()["id"] for answer in answered] == [10, 11, 12, 13]
    assert "Traceback" not in server.log


def test_a_stream_whose_worker_is_killed_breaks_off(tmp_path: Path) -> None:
    """An answer in parts that cannot be completed ends visibly, is not begun anew, and the next request works."""
    with serving(STREAM, *QUICK) as server:
        for number, _ in enumerate(rounds()):
            with unharmed(server, NORMAL, EXPECTED):
                mark = len(server.lines)
                value = {"id": 4, "op": "stream", "parts": 5, "gate": str(tmp_path / str(number))}
                with streaming(server, value) as answer:
                    lines = (line for line in answer.iter_lines() if line)
                    assert [next(lines), next(lines)] == PARTS
                    server.wait_log("item 4 waits", after=mark)
                    server.workers()[0].kill()
                    with pytest.raises(httpx.RemoteProtocolError):
                        next(lines)
    assert server.log.count("| item 4 waits") == number + 1


@pytest.mark.parametrize("harm", ["fail", "leave", "crash"])
def test_a_stream_that_fails_half_way_breaks_off(harm: str, lend: Lend) -> None:
    """The same when the script itself raises, leaves or crashes between two parts."""
    with lend(STREAM, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        parts = []
        value = {"id": 4, "op": "stream", "parts": 5, "then": harm}
        with pytest.raises(httpx.RemoteProtocolError), streaming(server, value) as answer:
            parts.extend(line for line in answer.iter_lines() if line)
        assert parts == PARTS


def test_a_stream_is_closed_when_its_client_leaves(tmp_path: Path, lend: Lend) -> None:
    """The generator of an answer nobody reads any more is closed; it does not run to its end."""
    with lend(STREAM, *QUICK) as server:
        for number, _ in enumerate(rounds(1, 10)):
            with unharmed(server, NORMAL, EXPECTED):
                mark = len(server.lines)
                gate = Gate(tmp_path / str(number))
                with streaming(server, {"id": 4, "op": "stream", "parts": 10**9, "gate": str(gate)}) as answer:
                    next(answer.iter_lines())
                wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
                gate.open()
                server.wait_log("stream 4 closed", after=mark)


def streaming(server: Server, value: object) -> contextlib.AbstractContextManager[httpx.Response]:
    return server.client.stream("POST", "/predict", json=value)


@pytest.mark.parametrize("script", [SINGLE, BATCH, OVERLAPPING])
def test_an_exception_with_a_status_is_the_clients_error(script: str, tmp_path: Path, lend: Lend) -> None:
    """An exception with a `status` of 400 to 499 is answered with it and its text; no traceback, no restart."""
    with lend(script, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        refused, *others = ask_all(server, [{"id": 4, "op": "refuse"}, *({"id": id} for id in range(10, 14))])
        assert refused.status == 422
        assert refused.json()["error"]["message"] == "there is no face in this picture"
        assert [answer.json()["id"] for answer in others] == [10, 11, 12, 13]
        assert server.metric("panglot_worker_restarts_total") == 0


def test_a_script_that_cancels_itself_has_failed(lend: Lend) -> None:
    """A CancelledError that nobody asked for is the script's failure, like any other exception."""
    with lend(OVERLAPPING, *QUICK) as server, unharmed(server, NORMAL, EXPECTED):
        (failed,) = ask_all(server, [{"id": 4, "op": "give_up"}])
        assert (failed.status, failed.code) == (500, "script_error")


def test_an_async_stream_nobody_reads_is_broken_off(tmp_path: Path) -> None:
    """Its worker serves others too, so it cannot be held back; the server's memory stays bounded."""
    (tmp_path / "model.py").write_text(
        "import asyncio\n\nasync def predict(request):\n    for number in range(request):\n"
        "        await asyncio.sleep(0)\n        yield 'x' * 100_000\n"
    )
    with serving(tmp_path) as server:
        before = measure(server).memory
        with connect(server, 100_000):
            wait_until(lambda: server.metric("panglot_connections_refused_total", limit="stream_backlog") == 1, 20)
            assert measure(server).memory - before < 64 * 1024 * 1024
        assert server.predict(1).status_code == 200
