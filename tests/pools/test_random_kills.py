"""Many items while workers of every stage are killed at random: each is answered exactly once, and nothing is left."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from support.server import Server, serving, wait_until
from support.traffic import Caller, times

CLIENTS = 16
STAGES = ("preprocess", "inference", "postprocess")


def test_every_item_is_answered_exactly_once() -> None:
    flags = ("--pools", "preprocess=2,inference=2,postprocess=2", "--restart-delay", "0", "--queue", "1000")
    with serving("row_script", *flags) as server:
        # It is ready with one worker of each stage, and each of the last has memory of its own.
        wait_until(lambda: len(server.workers()) == 6)
        memory = shared_memory(server.process.pid)
        stop = threading.Event()
        with ThreadPoolExecutor(CLIENTS) as threads:
            least = times(1_200, 10_000) // CLIENTS
            asking = [threads.submit(ask, server, number, least, stop) for number in range(CLIENTS)]
            killed = kill_at_random(server, rounds=times(3, 20))
            stop.set()
            seen = sum((asked.result() for asked in asking), Counter[int]())
        assert seen.total() >= least * CLIENTS
        assert set(seen) <= {200, 500}, seen
        assert seen[200] > 0.9 * seen.total()
        wait_until(lambda: server.metric("panglot_worker_restarts_total", reason="died") == killed)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        wait_until(lambda: server.metric("panglot_slots_in_use") == 0)
        assert shared_memory(server.process.pid) == memory


def ask(server: Server, number: int, least: int, stop: threading.Event) -> Counter[int]:
    """Ask one after the other on one connection; every answer must be the question's own."""
    seen = Counter[int]()
    with Caller(server) as caller:
        for turn in itertools.count():
            if turn >= least and stop.is_set():
                break
            id, size = number * 10_000 + turn % 10_000, random.choice((8, 5_000, 40_000))
            answer = caller.post({"id": id, "size": size})
            seen[answer.status] += 1
            if answer.status == 200:
                body = answer.json()
                assert (body["id"], body["twice"], body["size"]) == (id, 2.0 * id, size)
            else:
                assert answer.code == "worker_died"
    return seen


def kill_at_random(server: Server, rounds: int) -> int:
    """Kill a worker of each stage, one after the other, so many times."""
    chance = random.Random(7)
    for stage in STAGES * rounds:
        time.sleep(chance.uniform(0.05, 0.3))
        wait_until(lambda stage=stage: kill_one(server, stage))
    return rounds * len(STAGES)


def kill_one(server: Server, stage: str) -> bool:
    """Kill one that is alive; False when there is none right now."""
    for pid in re.findall(rf"{stage} worker \d ready after .* \(pid (\d+)", server.log)[-2:]:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim = psutil.Process(int(pid))
            if victim.status() != psutil.STATUS_ZOMBIE:
                victim.kill()
                victim.wait(10)
                return True
    return False


def shared_memory(pid: int) -> list[str]:
    """The memory files a process has open."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += [os.readlink(entry)] if "memfd" in os.readlink(entry) else []
    return sorted(found)
