"""Many wakes under load while workers are killed at any moment: every request is answered, and nothing is left."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from support.after import measure
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import times

WAKES, CLIENTS = times(15, 1000), 4
SLEEPER, STEADY = "predict", "steady"
"""The model that sleeps and wakes, and one beside it that is asked without a pause."""


@pytest.mark.timeout(7200)
def test_nothing_is_lost_over_many_wakes_with_kills(tmp_path: Path) -> None:
    flags = ("--sleep-after", "0.05s", "--restart-delay", "0", "--state-folder", str(tmp_path))
    with serving("sleeper", f"{STEADY}={PACKAGES / 'sleeper'}", *flags) as server:
        with ThreadPoolExecutor(CLIENTS + 1) as clients:
            # The connections of all clients are open before anything is counted.
            ask_all(server, clients, 0)
            wait_for_sleep(server, SLEEPER, STEADY)
            began = time.monotonic()
            ask_all(server, clients, 0)
            load_seconds = time.monotonic() - began
            wait_for_sleep(server, SLEEPER, STEADY)
            wait_until(lambda: not left(server))
            before, wakes = measure(server), server.metric("panglot_wakes_total", model=SLEEPER)
            # Seldom enough on a slow machine too: a worker that never lives for as long as it loads serves nobody.
            with load(server, clients), kills(server, longest_pause=max(0.6, 4 * load_seconds)):
                for turn in range(WAKES):
                    ask_all(server, clients, turn)
                    wait_for_sleep(server, SLEEPER)
        wait_for_sleep(server, SLEEPER, STEADY)
        assert server.metric("panglot_wakes_total", model=SLEEPER) >= wakes + WAKES
        wait_until(lambda: not left(server), message=lambda: f"processes are left: {left(server)}")
        wait_until(lambda: measure(server).fds <= before.fds + 1, message=lambda: f"{before} {measure(server)}")
        after = measure(server)
        assert after.threads <= before.threads + 1
        assert after.memory - before.memory < 32 << 20
        for name in ("panglot_queue_length", "panglot_requests_in_progress"):
            assert server.metric(name, model=SLEEPER) == server.metric(name, model=STEADY) == 0


@contextlib.contextmanager
def load(server: Server, clients: ThreadPoolExecutor) -> Iterator[None]:
    """Have a client ask the other model without a pause. All of its answers must be right."""
    ended = threading.Event()

    def ask_on() -> int:
        count = 0
        while not ended.wait(0.01):
            assert ask(server, STEADY, count) == 2 * count
            count += 1
        return count

    asking = clients.submit(ask_on)
    try:
        yield
    finally:
        ended.set()
    assert asking.result() >= WAKES


@contextlib.contextmanager
def kills(server: Server, longest_pause: float) -> Iterator[None]:
    """Kill all workers now and then."""
    ended, moments = threading.Event(), random.Random(39)

    def kill_now_and_then() -> None:
        while not ended.wait(moments.uniform(0.05, longest_pause)):
            for worker in server.workers():
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        yield
    finally:
        ended.set()
        killer.join()


def ask_all(server: Server, clients: ThreadPoolExecutor, turn: int) -> None:
    """Have every client send a request; each answer must be the request's own."""
    numbers = [CLIENTS * turn + client for client in range(CLIENTS)]
    assert list(clients.map(lambda number: ask(server, SLEEPER, number), numbers)) == [2 * number for number in numbers]


def ask(server: Server, model: str, number: int) -> int:
    """The answer to a request. One that ran as its worker was killed for the second time may be sent again."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = server.client.post(f"/models/{model}/predict", json={"number": number})
        if answer.status_code == 200:
            return int(answer.json()["doubled"])
        assert answer.json()["error"]["code"] in ("worker_died", "back_off"), answer.text
        time.sleep(0.05)
    raise AssertionError(f"no answer for {number}:\n{server.log}")


def left(server: Server) -> list[psutil.Process]:
    """All processes below the server that are not its own."""
    own = server.own()
    return [process for process in server.family() if process not in own]


def wait_for_sleep(server: Server, *models: str) -> None:
    """Wait until models sleep. Their workers may still be ending."""
    wait_until(
        lambda: all(server.metric("panglot_model_state", model=model, state="asleep") for model in models),
        60,
        message=lambda: server.log,
    )
