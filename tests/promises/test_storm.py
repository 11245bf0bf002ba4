"""A crowd, workers killed three times a second, and reloads: no request is lost, no answer goes to somebody else, and
at least 99 % succeed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.crowd import Guest, make_room
from support.descent import zombies
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import times

CROWD = times(300, 1000)
SECONDS = times(5, 120)
KILLS_PER_SECOND = 3
RELOAD_EVERY = 3.0


@dataclass
class Seen:
    """What the crowd was answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    crossed: list[str] = field(default_factory=list)


@pytest.mark.timeout(SECONDS + 240)
@pytest.mark.parametrize(("script", "seconds"), [("single", 0.02), ("batch", 0.005)])
def test_kills_and_reloads_under_a_crowd(script: str, seconds: float, tmp_path: Path) -> None:
    make_room(CROWD)
    folder = Path(shutil.copytree(PACKAGES / "fault_script", tmp_path / "package"))
    flags = ("--workers", "4", "--queue", str(2 * CROWD), "--max-connections", str(2 * CROWD), "--timeout", "120")
    with serving(folder / f"{script}.py", *flags) as server:
        server.wait_log("worker 3 ready", 60)
        seen = Seen()
        asyncio.run(storm(server, seen, seconds))
        total = seen.statuses.total()
        told = f"{total} answers: {dict(seen.statuses)} {dict(seen.codes)}"
        print(told)
        assert seen.lost == 0, told
        assert seen.crossed == [], seen.crossed[:3]
        assert set(seen.statuses) <= {200, 500, 503}, told
        assert seen.statuses[200] >= 0.99 * total, told
        assert total > CROWD
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        assert server.metric("panglot_queue_length") == 0
        front = server.process.pid
        # The last of the killed, and those that a reload has retired, may end at this moment.
        wait_until(lambda: not zombies(front), message=lambda: f"nobody waited for {zombies(front)}")


async def storm(server: Server, seen: Seen, seconds: float) -> None:
    ends = time.monotonic() + SECONDS
    requests = ({"id": number, "op": "sleep", "seconds": seconds} for number in itertools.count(1))
    crowd = [ask_again_and_again(server, seen, requests, ends) for _ in range(CROWD)]
    await asyncio.gather(kill_again_and_again(server, ends), reload_again_and_again(server, ends), *crowd)


async def ask_again_and_again(server: Server, seen: Seen, requests: Iterator[dict[str, Any]], ends: float) -> None:
    guest: Guest | None = None
    while time.monotonic() < ends:
        if guest is None:
            guest = Guest(*await asyncio.open_connection("127.0.0.1", server.port))
        request = next(requests)
        await guest.send(post(json.dumps(request).encode()))
        reply = await guest.reply(110)
        if reply is None:
            seen.lost += 1
        else:
            note(seen, request["id"], reply.status, json.loads(reply.body))
        if reply is None or reply.headers.get("connection") == "close":
            guest.close()
            guest = None
    if guest is not None:
        guest.close()


def post(body: bytes) -> bytes:
    return b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def note(seen: Seen, number: int, status: int, value: Any) -> None:
    seen.statuses[status] += 1
    if status != 200:
        seen.codes[value["error"]["code"]] += 1
    elif value != {"id": number, "twice": 2 * number}:
        seen.crossed.append(f"{number}: {value}")


async def kill_again_and_again(server: Server, ends: float) -> None:
    chance = random.Random(3)
    while time.monotonic() < ends:
        await asyncio.sleep(chance.uniform(0.5, 1.5) / KILLS_PER_SECOND)
        workers = server.workers()
        if workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                chance.choice(workers).kill()


async def reload_again_and_again(server: Server, ends: float) -> None:
    while time.monotonic() + RELOAD_EVERY < ends:
        await asyncio.sleep(RELOAD_EVERY)
        server.process.send_signal(signal.SIGHUP)
