"""Many wakes while workers are killed at any moment: every request is answered, and nothing is left."""

from __future__ import annotations

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from support.after import measure
from support.server import Server, serving, wait_until
from support.traffic import times

WAKES, CLIENTS = times(6, 1000), 4


@pytest.mark.timeout(7200)
def test_nothing_is_lost_over_many_wakes_with_kills(tmp_path: Path) -> None:
    flags = ("--sleep-after", "0.05s", "--restart-delay", "0", "--state-folder", str(tmp_path))
    with serving("sleeper", *flags) as server:
        with ThreadPoolExecutor(CLIENTS) as clients:
            # The connections of all clients are open before anything is counted.
            ask_all(server, clients, 0)
            wait_for_sleep(server)
            before, ended = measure(server), threading.Event()
            killer = threading.Thread(target=kill_now_and_then, args=(server, ended))
            killer.start()
            for turn in range(WAKES):
                ask_all(server, clients, turn)
                wait_for_sleep(server)
        ended.set()
        killer.join()
        wait_for_sleep(server)
        assert server.metric("panglot_wakes_total") >= WAKES
        wait_until(lambda: measure(server).fds <= before.fds + 1, message=lambda: f"{before} {measure(server)}")
        after = measure(server)
        assert after.threads <= before.threads + 1
        assert after.memory - before.memory < 32 << 20


def ask_all(server: Server, clients: ThreadPoolExecutor, turn: int) -> None:
    """Have every client send a request; each answer must be the request's own."""
    numbers = [CLIENTS * turn + client for client in range(CLIENTS)]
    assert list(clients.map(lambda number: ask(server, number), numbers)) == [2 * number for number in numbers]


def ask(server: Server, number: int) -> int:
    """The answer to a request. One that ran as its worker was killed for the second time may be sent again."""
    for _ in range(5):
        answer = server.predict({"number": number})
        if answer.status_code == 200:
            return int(answer.json()["doubled"])
        assert answer.json()["error"]["code"] in ("worker_died", "back_off"), answer.text
    raise AssertionError(f"no answer for {number}:\n{server.log}")


def kill_now_and_then(server: Server, ended: threading.Event) -> None:
    moments = random.Random(39)
    while not ended.wait(moments.uniform(0.05, 0.6)):
        for worker in server.workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()


def wait_for_sleep(server: Server) -> None:
    asleep = "panglot_model_state"
    wait_until(
        lambda: server.metric(asleep, state="asleep") == 1 and not server.workers(), 60, message=lambda: server.log
    )
