"""The next batch is on its way while this one runs: nobody waits for it longer, and each call keeps its own fate."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from support.server import Server, serving, wait_until
from support.traffic import Answer, Gate, answers, on_a_thread, send
from support.wire import Wire

FLAGS = ("--max-batch", "2", "--restart-delay", "0.05", "--restart-delay-max", "0.1", "--poison-deaths", "0")


@pytest.fixture(scope="module")
def one() -> Iterator[Server]:
    with serving("ahead", *FLAGS) as server:
        yield server


@pytest.fixture(scope="module")
def two() -> Iterator[Server]:
    with serving("ahead", *FLAGS, "--workers", "2") as server:
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 2)
        yield server


def plug(server: Server, gate: Gate, id: int, **more: object) -> Future[Answer]:
    """Keep a worker busy until the gate is open."""
    mark = len(server.lines)
    sent = send(server, {"id": id, "gate": str(gate), **more})
    server.wait_log(rf"item {id} waits", after=mark)
    return sent


def queue_up(server: Server, ids: list[int], waiting: int = 0, timeout_ms: float = 0) -> list[Future[Answer]]:
    """Send one after the other, so that they wait in this order."""
    sent = []
    for number, id in enumerate(ids, 1 + waiting):
        sent.append(send(server, {"id": id}, timeout_ms))
        wait_until(lambda number=number: server.metric("panglot_queue_length") == number)
    return sent


def batches(server: Server, *ids: int) -> list[list[int]]:
    """What the script was given, of these items, batch by batch, once it has told of all of them."""
    for id in ids:
        server.wait_log(rf"batch (\d+ )*{id} ")
    found = [[int(id) for id in text.split()] for text in re.findall(r"batch ([\d ]+) in \d+", server.log)]
    return [batch for batch in found if set(batch) & set(ids)]


def sent_ahead(server: Server) -> int:
    return int(server.metric("panglot_queue_ahead"))


def test_a_full_batch_goes_ahead_and_the_rest_waits(one: Server, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    first = plug(one, gate, 1)
    sent = queue_up(one, [2])
    assert sent_ahead(one) == 0, "one that waits is no full batch"
    sent += queue_up(one, [3, 4, 5, 6], waiting=1)
    wait_until(lambda: sent_ahead(one) == 2)
    assert one.metric("panglot_queue_length") == 5, "what was sent ahead still waits"
    gate.open()
    assert [answer.json()["id"] for answer in answers(one, [first, *sent])] == [1, 2, 3, 4, 5, 6]
    assert batches(one, 1, 2, 3, 4, 5, 6) == [[1], [2, 3], [4, 5], [6]]


def test_what_was_sent_ahead_is_called_back_for_a_worker_that_is_free(two: Server, tmp_path: Path) -> None:
    gates = [Gate(tmp_path / "a"), Gate(tmp_path / "b")]
    plugs = [plug(two, gate, id) for id, gate in enumerate(gates, 10)]
    sent = queue_up(two, [20, 21, 22, 23])
    wait_until(lambda: sent_ahead(two) == 4)
    # The first worker runs its own next batch, then that of the other, which is still busy.
    gates[0].open()
    assert [answer.json()["id"] for answer in answers(two, [plugs[0], *sent])] == [10, 20, 21, 22, 23]
    assert not plugs[1].done()
    gates[1].open()
    assert answers(two, [plugs[1]])[0].status == 200
    wait_until(lambda: two.metric("panglot_queue_length") == 0)


def test_a_reload_loses_nothing_of_what_was_sent_ahead(one: Server, tmp_path: Path) -> None:
    """The new worker gets what the old one, still busy, was sent."""
    gate = Gate(tmp_path / "gate")
    first = plug(one, gate, 50)
    sent = queue_up(one, [51, 52, 53])
    wait_until(lambda: sent_ahead(one) == 2)
    one.process.send_signal(signal.SIGHUP)
    replies = [answer.json() for answer in answers(one, sent, 60)]
    assert [reply["id"] for reply in replies] == [51, 52, 53]
    assert not first.done()
    gate.open()
    old = answers(one, [first])[0].json()["pid"]
    assert all(reply["pid"] != old for reply in replies)
    assert sum(map(len, batches(one, 51, 52, 53))) == 3, "each ran once"


def test_after_a_crash_only_the_batch_that_ran_is_suspect(one: Server, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    before = one.metric("panglot_reruns_total", reason="worker_died")
    guilty = plug(one, gate, 30, crash=True)
    sent = queue_up(one, [31, 32, 33])
    wait_until(lambda: sent_ahead(one) == 2)
    gate.open()
    assert [answer.status for answer in answers(one, [guilty, *sent])] == [500, 200, 200, 200]
    assert one.metric("panglot_reruns_total", reason="worker_died") == before + 1
    assert batches(one, 31, 32, 33) == [[31, 32], [33]], "they kept their company"


def test_deadlines_and_clients_that_leave(one: Server, tmp_path: Path) -> None:
    """They are dropped from a batch that was sent ahead; the script never sees them."""
    gate = Gate(tmp_path / "gate")
    first = plug(one, gate, 40)
    late = queue_up(one, [41], timeout_ms=5000)
    leaving = Wire(one)
    body = b'{"id": 42}'
    leaving.send(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n" % len(body) + body)  # fmt: skip
    wait_until(lambda: sent_ahead(one) == 2)
    rest = [send(one, {"id": 43})]
    leaving.close()
    answer = answers(one, late)[0]
    assert answer.status == 504
    assert "while waiting for a worker" in answer.body.decode()
    time.sleep(0.1)
    gate.open()
    assert [answer.status for answer in answers(one, [first, *rest])] == [200, 200]
    assert batches(one, 40, 43) == [[40], [43]]
    assert not re.search(r"batch .*4[12] ", one.log)


def test_the_bound_of_the_queue_counts_what_was_sent_ahead(tmp_path: Path) -> None:
    with serving("ahead", "--max-batch", "2", "--queue", "4") as server:
        gate = Gate(tmp_path / "gate")
        first = plug(server, gate, 1)
        sent = queue_up(server, [2, 3, 4, 5])
        assert answers(server, [send(server, {"id": 6})])[0].status == 503
        gate.open()
        assert [answer.status for answer in answers(server, [first, *sent])] == [200] * 5


@pytest.mark.parametrize("flags", [("--no-rerun", "--workers", "2"), ("--no-ahead",)])
def test_without_it_nothing_goes_ahead(flags: tuple[str, ...], tmp_path: Path) -> None:
    """With side effects nothing may run twice, and what is called back may have begun."""
    with serving("ahead", "--max-batch", "2", *flags) as server:
        wanted = 2 if "2" in flags else 1
        wait_until(lambda: server.metric("panglot_workers", state="ready") == wanted)
        gate = Gate(tmp_path / "gate")
        plugs = [plug(server, gate, id) for id in range(wanted)]
        sent = queue_up(server, [10, 11, 12, 13, 14, 15])
        assert sent_ahead(server) == 0
        gate.open()
        assert [answer.status for answer in answers(server, [*plugs, *sent])] == [200] * (6 + wanted)


ROUTES = """
import os, time
from panglot import route

class Model:
    @route("/a", batch=2)
    def a(self, items):
        return self.told("a", items)

    @route("/b", batch=3)
    def b(self, items):
        return self.told("b", items)

    def told(self, name, items):
        print("route", name, *[item["id"] for item in items], flush=True)
        for item in items:
            while item.get("gate") and not os.path.exists(item["gate"]):
                time.sleep(0.005)
        return [item["id"] for item in items]
"""


def test_each_route_has_batches_of_its_own_that_go_ahead(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(ROUTES)
    with serving(tmp_path) as server:
        gate = Gate(tmp_path / "gate")
        sent: list[Future[Answer]] = []

        def ask(route: str, id: int, waiting: int, **more: str) -> None:
            body = {"id": id, **more}
            sent.append(on_a_thread(lambda: Answer(200, {}, server.client.post(route, json=body).content, 0)))
            wait_until(lambda: server.metric("panglot_queue_length") == waiting)

        ask("/a", 0, 0, gate=str(gate))
        server.wait_log("route a 0")
        for number, (route, id) in enumerate([("/b", 1), ("/a", 2), ("/b", 3), ("/a", 4)], 1):
            ask(route, id, number)
        assert sent_ahead(server) == 0, "of the route that has waited longest, there is no full batch"
        ask("/b", 5, 5)
        wait_until(lambda: sent_ahead(server) == 3)
        gate.open()
        assert [answer.json() for answer in answers(server, sent)] == [0, 1, 2, 3, 4, 5]
        server.wait_log("route a 2 4")
        assert re.findall(r"route (.*)", server.log) == ["a 0", "b 1 3 5", "a 2 4"]
