"""Many items while workers of every stage are killed at random: each is answered exactly once, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.server import Server, serving, wait_until
from support.traffic import Caller, times

CLIENTS = 16


def test_every_item_is_answered_exactly_once() -> None:
    total = times(1_200, 10_000)
    flags = ("--pools", "preprocess=2,inference=2,postprocess=2", "--restart-delay", "0", "--queue", "1000")
    with serving("row_script", *flags) as server:
        memory = shared_memory(server.process.pid)
        stop = threading.Event()
        killer = threading.Thread(target=kill_at_random, args=(server, stop))
        killer.start()
        with ThreadPoolExecutor(CLIENTS) as threads:
            seen = Counter[int]()
            for counted in threads.map(lambda n: ask(server, n, total // CLIENTS), range(CLIENTS)):
                seen.update(counted)
        stop.set()
        killer.join()
        assert seen.total() == total
        assert set(seen) <= {200, 500}, seen
        assert seen[200] > 0.9 * total
        deaths = {stage: len(re.findall(f"{stage} worker . was killed by SIGKILL", server.log)) for stage in STAGES}
        assert min(deaths.values()) >= 1, deaths
        wait_until(lambda: server.metric("franca_requests_in_progress") == 0)
        wait_until(lambda: server.metric("franca_slots_in_use") == 0)
        assert shared_memory(server.process.pid) == memory


STAGES = ("preprocess", "inference", "postprocess")


def ask(server: Server, number: int, count: int) -> Counter[int]:
    """Ask one after the other on one connection; every answer must be the question's own."""
    seen = Counter[int]()
    with Caller(server) as caller:
        for turn in range(count):
            id, size = number * 10_000 + turn, random.choice((8, 5_000, 40_000))
            answer = caller.post({"id": id, "size": size})
            seen[answer.status] += 1
            if answer.status == 200:
                body = answer.json()
                assert (body["id"], body["twice"], body["size"]) == (id, 2.0 * id, size)
            else:
                assert answer.code == "worker_died"
    return seen


def kill_at_random(server: Server, stop: threading.Event) -> None:
    chance = random.Random(7)
    while not stop.wait(chance.uniform(0.1, 0.4)):
        found = re.findall(rf"{chance.choice(STAGES)} worker \d ready after .* \(pid (\d+)", server.log)
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(chance.choice(found[-2:])), signal.SIGKILL)


def shared_memory(pid: int) -> list[str]:
    """The memory files a process has open."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += [os.readlink(entry)] if "memfd" in os.readlink(entry) else []
    return sorted(found)
