"""SIGTERM: what was accepted is answered, nothing else is waited for."""

from __future__ import annotations

import random
import signal
import socket
import time

import pytest

from support.load import Busy
from support.server import Server, serving, wait_until
from support.traffic import rounds, send


def is_busy(server: Server) -> bool:
    """Whether a request is accepted and not yet answered."""
    return server.metric("panglot_requests_in_progress") == 1


@pytest.mark.parametrize("chance", rounds(2), ids=lambda chance: "seeded")
def test_no_accepted_request_is_lost(chance: random.Random) -> None:
    """16 clients, 200 requests a second, half keep-alive and half fresh connections."""
    with serving("life_echo", "--workers", "2") as server:
        with Busy(server) as clients:
            wait_until(lambda: clients.statuses[200] > 50)
            time.sleep(chance.random())
            assert server.stop() == 0
        assert clients.lost == []
        assert clients.wrong == []
        assert set(clients.statuses) <= {200, 503}


def test_readiness_turns_at_once_and_answers_say_close() -> None:
    with serving("life_echo") as server:
        slow = send(server, {"id": 1, "sleep": 2.5})
        wait_until(lambda: is_busy(server))
        with socket.create_connection(("127.0.0.1", server.port)) as kept:
            server.process.send_signal(signal.SIGTERM)
            server.wait_log("stopping; 1 request")
            kept.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = kept.makefile("rb").read().decode()
        assert " 503 " in answer
        assert '"state":"draining"' in answer
        assert "connection: close" in answer
        done = slow.result(20)
        assert done.status == 200
        assert done.headers["connection"] == "close"
        assert server.stop() == 0


def test_a_request_beyond_the_drain_time_is_counted_and_the_exit_code_is_1() -> None:
    with serving("life_echo", "--drain", "0.5s") as server:
        slow = send(server, {"id": 1, "sleep": 600})
        wait_until(lambda: is_busy(server))
        assert server.stop() == 1
        assert "1 accepted request was not answered" in server.log
        assert slow.exception(10) is not None


def test_the_second_signal_ends_at_once() -> None:
    with serving("life_echo", "--drain", "60s") as server:
        send(server, {"id": 1, "sleep": 60})
        wait_until(lambda: is_busy(server))
        server.process.send_signal(signal.SIGINT)
        server.wait_log("stopping")
        assert server.stop(signal.SIGINT) == 1


def test_an_upload_under_way_is_finished() -> None:
    with serving("life_echo") as server, socket.create_connection(("127.0.0.1", server.port)) as upload:
        body = b'{"id": 5}'
        head = (
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        upload.sendall(head % len(body) + body[:4])
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 0)
        server.process.send_signal(signal.SIGTERM)
        server.wait_log("stopping; 1 request")
        upload.sendall(body[4:])
        answer = upload.makefile("rb").read()
        assert b" 200 " in answer
        assert b'"id":5' in answer
        assert server.stop() == 0


def test_an_upload_that_never_ends_is_counted() -> None:
    with (
        serving("life_echo", "--drain", "0.5s") as server,
        socket.create_connection(("127.0.0.1", server.port)) as upload,
    ):
        upload.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nxx")
        wait_until(lambda: server.metric("panglot_request_memory_bytes") > 0)
        assert server.stop() == 1
        assert "1 accepted request was not answered" in server.log


def test_stopping_while_the_script_loads() -> None:
    with serving("fault_load", env={"LOAD_SECONDS": "60"}, ready=False) as server:
        time.sleep(0.5)
        assert server.stop() == 0


def test_stopping_with_a_hung_worker() -> None:
    with serving("life_echo", "--drain", "0.5s") as server:
        worker = server.workers()[0]
        worker.send_signal(signal.SIGSTOP)
        assert server.stop() == 0


def test_an_idle_server_stops_at_once_and_frees_its_port() -> None:
    with serving("life_echo") as server:
        server.client.get("/v2/health/live")
        assert server.stop() == 0
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", server.port))
