"""Nodes that misbehave: whoever asked is told at once, and nobody else notices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from support.server import Server, serving, wait_until

"""Seconds; the timeout of the server is 60."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("megflow_faults") as running:
        yield running


def ask(server: Server, word: str, **options: object) -> httpx.Response:
    return server.client.post("/analyze/bytes", content=word.encode(), **options)


FAULTS = {
    # what the node does: status, and words of the answer
    "raise it": (500, "node 'does' failed on this request"),
    "exit": (500, "node 'does' failed on this request"),
    "nothing_of_the_kind": (500, "node 'does' failed on this request"),
    "not_envelope": (500, "node 'does' failed on this request"),
    "drop": (500, "node 'does' took it and neither sent it on nor kept it"),
    "wrong_port": (500, "node 'sink' took it and neither sent it on nor kept it"),
    "fresh": (500, "node 'does' took it and neither sent it on nor kept it"),
    "text": (500, "the graph's result cannot be sent"),
    "empty": (500, "the graph's result cannot be sent"),
    "twice": (200, "first"),
    "sent_again": (200, "once"),
    "numbered": (200, "numbered"),
}


@pytest.mark.parametrize("word", FAULTS)
def test_a_fault_costs_its_own_request_and_is_answered_at_once(server: Server, word: str) -> None:
    answer = ask(server, word)
    status, words = FAULTS[word]
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert ask(server, "echo still here").text == "still here"
    assert len(server.workers()) == 1


def test_tracebacks_are_logged_and_not_sent(server: Server) -> None:
    before = len(server.lines)
    assert "secret" not in ask(server, "raise secret").text
    server.wait_log("ValueError: as asked: secret", after=before)


def test_use_after_move_is_explained(server: Server) -> None:
    before = len(server.lines)
    ask(server, "moved")
    server.wait_log("this envelope was sent and belongs to its receiver now", after=before)


def test_the_instance_is_rebuilt(server: Server) -> None:
    first = int(ask(server, "instance").text)
    ask(server, "raise it")
    assert int(ask(server, "instance").text) == first + 1
    wait_until(lambda: server.metric("panglot_graph_node_failures_total", node="does") >= 1)


def test_extra_answers_are_dropped_and_counted(server: Server) -> None:
    before = server.metric("panglot_graph_extra_answers_total", node="bytes")
    assert ask(server, "twice").text == "first"
    wait_until(lambda: server.metric("panglot_graph_extra_answers_total", node="bytes") == before + 1)


def test_an_answer_by_number_may_come_later(server: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(ask, server, "later")
        while not later.done():
            assert server.client.post("/analyze/bytes", content=b"release").text == "done"
            time.sleep(0.02)
        assert later.result().text == "released"


def test_faults_among_others(server: Server) -> None:
    def one(number: int) -> bool:
        with server.new_client() as client:
            if number % 3:
                return client.post("/analyze/bytes", content=b"echo %d" % number).text == str(number)
            return client.post("/analyze/bytes", content=b"raise %d" % number).status_code == 500

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(one, range(120)))


def test_a_request_that_is_kept_gets_504_and_costs_nobody_else_anything(server: Server) -> None:
    assert ask(server, "keep", headers={"x-timeout-ms": "300"}).status_code == 504
    assert ask(server, "echo on").text == "on"


def test_a_client_that_leaves_is_forgotten(server: Server) -> None:
    with server.new_client() as client, pytest.raises(httpx.ReadTimeout):
        client.post("/analyze/bytes", content=b"sleep 0.5", timeout=0.1)
    assert ask(server, "echo on").text == "on"
    wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)


def test_a_slow_node_holds_its_clients_back_and_loses_none(server: Server) -> None:
    """Capacity 4: what does not fit waits at the entrance, and beyond the slots in the queue of the server."""

    def one(number: int) -> str:
        with server.new_client() as client:
            return client.post("/analyze/bytes", content=b"sleep 0.01").text

    memory = psutil.Process(server.workers()[0].pid).memory_info().rss
    with ThreadPoolExecutor(40) as pool:
        assert list(pool.map(one, range(100))) == ["slept"] * 100
    grown = psutil.Process(server.workers()[0].pid).memory_info().rss - memory
    assert grown < 50_000_000


def test_a_request_that_kills_its_worker_is_run_again_once(server: Server, tmp_path: Path) -> None:
    assert ask(server, f"kill {tmp_path / 'once'}").text == "survived"
    assert ask(server, "echo on").text == "on"


def test_one_that_kills_again_is_answered_500_and_others_go_on(server: Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(ask, server, "sleep 0.3") for _ in range(4)]
        time.sleep(0.1)
        answer = ask(server, "kill")
        assert answer.status_code == 500
        assert all(other.result().status_code in (200, 500) for other in others)
    wait_until(lambda: ask(server, "echo on").text == "on", 20)


def test_a_node_that_hangs_is_ended_with_its_worker() -> None:
    with serving("megflow_faults", "--timeout", "1", "--kill-grace", "0.5") as server:
        pid = server.workers()[0].pid
        assert ask(server, "sleep 600").status_code == 504
        wait_until(lambda: [worker.pid for worker in server.workers()] not in ([pid], []), 20)
        wait_until(lambda: server.ready() == 200 and ask(server, "echo on").text == "on", 20)


def test_graphs_are_replicated_by_workers() -> None:
    with serving("megflow_faults", "--workers", "2") as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)

        def slow(_: int) -> None:
            with server.new_client() as client:
                assert client.post("/analyze/bytes", content=b"sleep 0.2").status_code == 200

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(slow, range(8)))
        wait_until(
            lambda: all(
                server.metric("panglot_graph_messages_total", worker=str(index), node="does", port="inp") >= 1
                for index in range(2)
            )
        )


def test_a_stop_answers_what_is_in_the_graph() -> None:
    with serving("megflow_faults") as server, ThreadPoolExecutor(4) as pool, server.new_client() as client:
        open_requests = [pool.submit(client.post, "/analyze/bytes", content=b"sleep 1.5") for _ in range(4)]
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 4)
        assert server.stop() == 0
        assert [request.result().text for request in open_requests] == ["slept"] * 4


def test_a_request_that_failed_does_not_hold_up_the_order_of_others() -> None:
    with serving("megflow_order") as server:

        def one(word: bytes) -> int:
            with server.new_client() as client:
                return client.post("/analyze/bytes", content=word).status_code

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(one, [b"slow", b"fail", b"quick", b"slow", b"fail", b"quick"] * 4))
        assert found == [200, 500, 200, 200, 500, 200] * 4


def test_a_node_that_cannot_be_made_anew_takes_its_worker_along() -> None:
    with serving("megflow_order") as server:
        pid = server.workers()[0].pid
        assert server.client.post("/analyze/bytes", content=b"spoil").status_code == 500
        server.wait_log("failed, and so did its replacement: RuntimeError: spoilt")
        wait_until(lambda: [worker.pid for worker in server.workers()] not in ([pid], []), 20)
        wait_until(lambda: server.client.post("/analyze/bytes", content=b"x").status_code == 200, 20)


TWO_SERVERS = """
main = "g"
[[graphs]]
name = "g"
connections = [
    { cap = 4, ports = ["a:out", "b:out", "upper:inp"] },
    { cap = 4, ports = ["upper:out", "a:inp", "b:inp"] },
]
nodes = [
    { name = "a", ty = "BytesServer", port = 8086 },
    { name = "b", ty = "BytesServer", port = 8087 },
    { name = "upper", ty = "Upper" },
]
"""
UPPER = """
import time
from megflow import register

@register(inputs=["inp"], outputs=["out"])
class Upper:
    def __init__(self, name, args):
        pass
    def exec(self):
        envelope = self.inp.recv()
        if envelope is not None:
            time.sleep(0.02)
            self.out.send(envelope)
"""


def test_an_answer_reaches_the_server_node_its_request_came_in_by(tmp_path: Path) -> None:
    """Requests of two server nodes have the same numbers, and here every answer is sent to both nodes."""
    (tmp_path / "two.toml").write_text(TWO_SERVERS)
    (tmp_path / "upper.py").write_text(UPPER)
    with serving(tmp_path / "two.toml", "-p", str(tmp_path)) as server:
        other = server.wait_log(r"listening on (http://\S+) too")
        urls = {"a": server.url, "b": other[1]}

        def one(word: str) -> str:
            return httpx.post(f"{urls[word[0]]}/analyze/bytes", content=word.encode(), timeout=30).text

        words = [f"{name}{number}" for number in range(12) for name in "ab"]
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(one, words)) == words
