"""Fronts and workers are killed at random under load: a request of a front that lives gets exactly one answer."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from support.server import Server, serving, wait_until
from support.traffic import times

CLIENTS = 8
FRONTS = WORKERS = 2


def test_every_request_of_a_front_that_lives_is_answered_once(tmp_path: Path) -> None:
    flags = ("--fronts", str(FRONTS), "--workers", str(WORKERS), "--restart-delay", "0.1", "--queue", "1000")
    seen, numbers, stop = tmp_path / "seen", itertools.count(1), threading.Event()
    with serving("lent_calls", *flags, leaves="fronts and workers are killed") as server:
        with ThreadPoolExecutor(CLIENTS) as threads:
            least = times(600, 100_000) // CLIENTS
            asking = [threads.submit(ask, server, least, numbers, seen, stop) for _ in range(CLIENTS)]
            try:
                fronts, workers = kill_at_random(server, rounds=times(4, 400))
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
    assert max(runs.values()) <= 2, runs.most_common(3)
    assert len(runs) >= outcomes["200"]


def ask(server: Server, least: int, numbers: itertools.count[int], seen: Path, stop: threading.Event) -> Counter[str]:
    """Send one request after the other, on a new connection after one was reset; what became of them."""
    outcomes: Counter[str] = Counter()
    client = httpx.Client(base_url=server.url, timeout=60)
    while outcomes.total() < least or not stop.is_set():
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


def kill_at_random(server: Server, rounds: int) -> tuple[int, int]:
    """Kill a front or a worker, and wait until there is another, so many times; how many of each were killed."""
    source, killed = random.Random(31), [0, 0]
    for turn in range(rounds):
        is_worker = turn % 2
        victims = server.workers() if is_worker else server.fronts()
        with contextlib.suppress(psutil.NoSuchProcess):
            source.choice(victims).kill()
            killed[is_worker] += 1
        wait_until(lambda: len(server.fronts()) == FRONTS and len(server.workers()) == WORKERS, 60)
        wait_until(lambda: is_complete(server), 60)
    return killed[0], killed[1]


def is_complete(server: Server) -> bool:
    with contextlib.suppress(httpx.TransportError):
        answer = httpx.get(f"{server.url}/metrics", timeout=10).text
        return f'panglot_workers{{state="ready"}} {WORKERS}\n' in answer
    return False
