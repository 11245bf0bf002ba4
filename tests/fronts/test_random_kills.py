"""Fronts and workers are killed, stopped and reloaded under load: a request of a living front gets one answer."""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from support.descent import started
from support.server import Server, serving, wait_until
from support.traffic import times

CLIENTS = 8
FRONTS = WORKERS = 2
LIFE = 1.2
"""Seconds that a process has lived when it is killed."""
STOPPED = 1.2
"""Seconds that a process stands still: a front is given no connection after one second."""


@pytest.mark.parametrize(("rerun", "most"), [("--rerun", 2), ("--no-rerun", 1)])
def test_every_request_of_a_front_that_lives_is_answered_once(tmp_path: Path, rerun: str, most: int) -> None:
    flags = ("--fronts", str(FRONTS), "--workers", str(WORKERS), "--restart-delay", "0.1", "--queue", "1000", rerun)
    seen, numbers, stop = tmp_path / "seen", itertools.count(1), threading.Event()
    with serving("lent_calls", *flags, leaves="fronts and workers are killed") as server:
        with ThreadPoolExecutor(CLIENTS) as threads:
            least = times(600, 100_000) // CLIENTS
            asking = [threads.submit(ask, server, least, numbers, seen, stop) for _ in range(CLIENTS)]
            try:
                fronts, workers = disturb_at_random(server, rounds=times(5, 400))
            finally:
                stop.set()
            outcomes = sum((asked.result() for asked in asking), Counter[str]())
        assert outcomes.total() >= least * CLIENTS
        assert set(outcomes) <= {"200", "500", "503", "reset"}, outcomes
        assert outcomes["200"] > 0.9 * outcomes.total(), outcomes
        # A connection has one request at a time, so a front that is killed resets one for each of its connections.
        assert outcomes["reset"] <= fronts * CLIENTS, (outcomes, fronts, workers)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
    runs = Counter(seen.read_text().split())
    assert max(runs.values()) <= most, runs.most_common(3)
    assert len(runs) >= outcomes["200"]


def ask(server: Server, least: int, numbers: itertools.count[int], seen: Path, stop: threading.Event) -> Counter[str]:
    """Send one request after the other, on a new connection after one was reset; what became of them."""
    outcomes: Counter[str] = Counter()
    client = httpx.Client(base_url=server.url, timeout=60)
    while server.process.poll() is None and (outcomes.total() < least or not stop.is_set()):
        number = next(numbers)
        try:
            answer = client.post("/predict", json={"id": number, "seen": str(seen), "sleep": 0.005, "answer": 10})
            outcomes[str(answer.status_code)] += 1
            assert answer.status_code != 200 or answer.json()["text"] == "y" * 10
        except httpx.TransportError:
            outcomes["reset"] += 1
            client.close()
            client = httpx.Client(base_url=server.url, timeout=60)
    client.close()
    return outcomes


def disturb_at_random(server: Server, rounds: int) -> tuple[int, int]:
    """Kill or stop a front or a worker, or reload all, so many times; how many fronts and workers were killed."""
    source, killed = random.Random(31), [0, 0]
    for turn in range(rounds):
        is_worker = turn % 2
        victims = server.workers() if is_worker else server.fronts()
        with contextlib.suppress(psutil.NoSuchProcess):
            victim = source.choice(victims)
            if turn % 5 == 4:
                server.process.send_signal(signal.SIGHUP)
            elif turn % 5 >= 2:
                victim.suspend()
                time.sleep(STOPPED)
                victim.resume()
            else:
                # The server ends when a front dies five times in a row without a second of life between.
                age = time.clock_gettime(time.CLOCK_BOOTTIME) - started(victim)
                time.sleep(max(0.0, LIFE - age))
                victim.kill()
                killed[is_worker] += 1
        wait_until(lambda: len(server.fronts()) == FRONTS and len(server.workers()) == WORKERS, 60)
        wait_until(lambda: is_complete(server), 60)
    return killed[0], killed[1]


def is_complete(server: Server) -> bool:
    with contextlib.suppress(httpx.TransportError):
        answer = httpx.get(f"{server.url}/metrics", timeout=10).text
        return f'panglot_workers{{state="ready"}} {WORKERS}\n' in answer
    return False
