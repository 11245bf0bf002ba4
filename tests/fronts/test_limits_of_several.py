"""What several fronts keep to together: deaths in a row, calls that are not lent, the end of lent calls, reloads."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from support.fronts import client_of
from support.server import Server, serving, wait_until

TWO = ("--fronts", "2", "--workers", "2")


def lent(server: Server) -> float:
    return sum(server.metric("panglot_calls_lent_total", front=str(front)) for front in (0, 1))


@contextlib.contextmanager
def at_gate(client: httpx.Client, gate: Path) -> Iterator[Future[httpx.Response]]:
    """A call that a worker runs until the gate is there."""
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.post, "/predict", json={"gate": str(gate)})
        wait_until(Path(f"{gate}.begun").exists)
        yield asked


def test_a_front_that_dies_five_times_in_a_row_ends_the_server() -> None:
    with serving("life_echo", *TWO, "--restart-delay", "0.1") as server:
        first, second = server.fronts()
        while server.process.poll() is None:
            for front in server.fronts():
                if front != first:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        front.kill()
            time.sleep(0.01)
        assert server.process.wait(20) == 1
        server.wait_log("error: front 1 ended 5 times right after its start")
        assert server.log.count("front 1 ended (signal 9): another one starts") >= 4
        assert "front 0 ended" not in server.log
        assert not second.is_running()


def test_nothing_is_lent_while_every_worker_is_busy(tmp_path: Path) -> None:
    with serving("lent_calls", *TWO) as server, ThreadPoolExecutor(6) as threads:
        clients = {front: [client_of(server, front) for _ in range(4)] for front in (0, 1)}
        gates = [tmp_path / "first", tmp_path / "second"]
        with at_gate(clients[0].pop(), gates[0]) as first, at_gate(clients[1].pop(), gates[1]) as second:
            before = lent(server)
            waiting = [threads.submit(client.post, "/predict", json={}) for client in (*clients[0], *clients[1])]
            wait_until(lambda: server.metric("panglot_queue_length") == len(waiting))
            # Fronts look every tenth of a second whether another one has a free worker.
            time.sleep(0.5)
            assert (lent(server), server.metric("panglot_queue_length")) == (before, len(waiting))
            for gate in gates:
                gate.touch()
            assert {asked.result().status_code for asked in (first, second, *waiting)} == {200}


def test_lent_calls_are_answered_while_the_server_stops(tmp_path: Path) -> None:
    """One that runs in the other front, and others that wait for a worker of either."""
    with serving("lent_calls", *TWO, "--drain", "30s") as server, ThreadPoolExecutor(3) as threads:
        clients = [client_of(server, 0) for _ in range(5)]
        gates = [tmp_path / "own", tmp_path / "lent"]
        with at_gate(clients[0], gates[0]) as own, at_gate(clients[1], gates[1]) as borrowed:
            assert lent(server) > 0
            waiting = [threads.submit(client.post, "/predict", json={"answer": 5}) for client in clients[2:]]
            wait_until(lambda: server.metric("panglot_queue_length") == 3)
            server.process.send_signal(signal.SIGTERM)
            server.wait_log("stopping; 5 requests to finish")
            gates[1].touch()
            answers = [asked.result() for asked in waiting]
            assert not own.done()
            gates[0].touch()
            assert {answer.status_code for answer in (own.result(), borrowed.result())} == {200}
        assert [(answer.status_code, answer.json()["text"]) for answer in answers] == [(200, "yyyyy")] * 3
        assert own.result().json()["pid"] != borrowed.result().json()["pid"]
        assert server.process.wait(20) == 0


LOADED = """
import os
import time
from pathlib import Path

FOLDER = Path({folder!r})


def is_there(pid):
    try:
        return Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


(FOLDER / f"pid-{{os.getpid()}}").touch()
# Meanwhile a worker that was told to end has ended, and one that loads at the same time has begun.
time.sleep(0.5)
with open(FOLDER / "counts", "a") as file:
    file.write(f"{{sum(is_there(path.name[4:]) for path in FOLDER.glob('pid-*'))}}\\n")


def predict(x):
    return os.getpid()
"""


def test_a_reload_has_at_most_one_model_more_in_memory(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.py").write_text(LOADED.format(folder=str(seen)))
    with serving(tmp_path / "model", *TWO) as server:
        before = {worker.pid for worker in server.workers()}
        (seen / "counts").unlink()
        answered, over = list[int](), threading.Event()

        def ask() -> None:
            while not over.is_set():
                with server.new_client() as client:
                    answered.append(client.post("/predict", json=1).status_code)

        with ThreadPoolExecutor(2) as threads:
            asking = [threads.submit(ask) for _ in range(2)]
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(server.workers()) == 2 and not before & {each.pid for each in server.workers()})
            over.set()
            for each in asking:
                each.result()
        counts = [int(line) for line in (seen / "counts").read_text().split()]
        assert len(counts) == 2
        assert max(counts) <= 3, counts
        assert set(answered) == {200}
