"""Fronts and workers are killed, stopped and reloaded, and a model comes and goes: a request of a living front gets one
answer."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import shutil
import signal
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import psutil
import pytest

from support.descent import started
from support.models import all_of, write_model
from support.server import PACKAGES, Server, serving, wait_until
from support.traffic import times

CLIENTS = 8
"""Requests that are open at once."""
FRONTS = WORKERS = 2
LIFE = 1.2
"""Seconds that a process has lived when it is killed."""
STOPPED = 1.2
"""Seconds that a process stands still: a front is given no connection after one second."""
NOTICED = 0.5
"""Seconds after which the parent has noticed that a front was killed."""
CONTROL = "of-whoever-runs-it"
RESET, LOST = "reset", "lost by a front that lives"
PATH = "/models/lent_calls/predict"


class Load:
    """What all clients share: the numbers of requests, the file in which the script notes them, which fronts were
    killed, and when to stop."""

    def __init__(self, server: Server, seen: Path) -> None:
        self.server = server
        self.seen = seen
        self.numbers = itertools.count(1)
        self.killed: dict[int, float] = {}
        """When fronts were killed, by pid: a moment before they were."""
        self.used: set[int] = set()
        """The fronts that were seen to have connections of the clients, by pid."""
        self.stop = threading.Event()

    def goes_on(self, outcomes: Counter[str], least: int) -> bool:
        return self.server.process.poll() is None and (outcomes.total() < least or not self.stop.is_set())

    def next_item(self) -> dict[str, Any]:
        number = next(self.numbers)
        # Answers of many lengths: one that went to another request is seen.
        return {"id": number, "seen": str(self.seen), "sleep": 0.005, "answer": number % 1000}


class Owned:
    """One connection: which front has it, as far as that could be seen before the front died."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.began = time.monotonic()
        self.port = 0
        self.front: int | None = None

    def answered(self, port: int) -> None:
        """Note that the connection with this port here has had an answer, so that a front has it."""
        if port != self.port:
            self.port, self.front = port, self._find(port)

    def _find(self, port: int) -> int | None:
        for front in self.load.server.fronts():
            with contextlib.suppress(psutil.Error):
                if any(each.raddr and each.raddr.port == port for each in front.net_connections("tcp")):
                    self.load.used.add(front.pid)
                    return front.pid
        return None

    def reset(self) -> str:
        """What a reset of the connection counts as."""
        killed = self.load.killed
        if self.front is None:
            # It was on its way to a front that was killed, or its front died before it was looked for. The parent gives
            # a front connections until it notices its death, which is a moment after the kill.
            return RESET if any(moment >= self.began - NOTICED for moment in list(killed.values())) else LOST
        return RESET if self.front in killed else LOST


def on_connections_of_their_own(load: Load, least: int) -> Counter[str]:
    with ThreadPoolExecutor(CLIENTS) as threads:
        asking = [threads.submit(one_by_one, load, -(-least // CLIENTS)) for _ in range(CLIENTS)]
        return sum((asked.result() for asked in asking), Counter[str]())


def one_by_one(load: Load, least: int) -> Counter[str]:
    """Send one request after the other, on a new connection after one was reset; what became of them."""
    outcomes: Counter[str] = Counter()
    client, owned = httpx.Client(base_url=load.server.url, timeout=60), Owned(load)
    while load.goes_on(outcomes, least):
        item = load.next_item()
        try:
            answer = client.post(PATH, json=item)
            count(outcomes, answer.status_code, answer.content, item)
            with contextlib.suppress(OSError):  # An answer may have ended the connection.
                owned.answered(answer.extensions["network_stream"].get_extra_info("client_addr")[1])
        except httpx.TransportError:
            outcomes[owned.reset()] += 1
            client.close()
            client, owned = httpx.Client(base_url=load.server.url, timeout=60), Owned(load)
    client.close()
    return outcomes


def on_one_connection(load: Load, least: int) -> Counter[str]:
    """Send requests before the answers to earlier ones have come; what became of them."""
    outcomes: Counter[str] = Counter()
    while load.goes_on(outcomes, least):
        asked: deque[dict[str, Any]] = deque()
        owned = Owned(load)
        with contextlib.suppress(OSError), connected(load.server) as (sock, reader):
            while asked or load.goes_on(outcomes, least):
                while len(asked) < CLIENTS and load.goes_on(outcomes, least):
                    item = load.next_item()
                    body = json.dumps(item).encode()
                    asked.append(item)
                    head = f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                    sock.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
                status, content = next_answer(reader)
                count(outcomes, status, content, asked.popleft())
                owned.answered(sock.getsockname()[1])
        if asked:
            outcomes[owned.reset()] += len(asked)
    return outcomes


@contextlib.contextmanager
def connected(server: Server) -> Iterator[tuple[socket.socket, BinaryIO]]:
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 80), timeout=60) as sock, sock.makefile("rb") as reader:
        yield sock, reader


def next_answer(reader: BinaryIO) -> tuple[int, bytes]:
    """The next status and body on a connection. Raises ConnectionError at its end."""
    status, length = 0, 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if not status:
            status = int(line.split()[1])
        elif name.lower() == b"content-length":
            length = int(value)
    body = reader.read(length)
    if not line or len(body) < length:
        raise ConnectionError
    return status, body


def count(outcomes: Counter[str], status: int, body: bytes, item: dict[str, Any]) -> None:
    outcomes[str(status)] += 1
    assert status != 200 or json.loads(body)["text"] == "y" * item["answer"]


@pytest.mark.parametrize(("rerun", "most"), [("--rerun", 2), ("--no-rerun", 1)])
@pytest.mark.parametrize("ask", [on_connections_of_their_own, on_one_connection])
def test_every_request_of_a_front_that_lives_is_answered_once(
    tmp_path: Path, ask: Callable[[Load, int], Counter[str]], rerun: str, most: int
) -> None:
    shutil.copytree(PACKAGES / "lent_calls", tmp_path / "models" / "lent_calls")
    write_model(tmp_path / "models" / "coming")
    flags = ("--admin", "--fronts", str(FRONTS), "--workers", str(WORKERS), "--restart-delay", "0.1", rerun)
    environment = {"PANGLOT_ADMIN_TOKEN": CONTROL}
    with serving(all_of(tmp_path / "models"), *flags, "--queue", "1000", env=environment) as server:
        load = Load(server, tmp_path / "seen")
        with ThreadPoolExecutor(2) as threads:
            least = times(300, 100_000)
            asked, changed = threads.submit(ask, load, least), threads.submit(come_and_go, load)
            try:
                workers = disturb_at_random(load, rounds=times(5, 200))
            finally:
                load.stop.set()
            outcomes = asked.result()
            assert changed.result() > 0
        assert outcomes.total() >= least
        # Also: only connections of fronts that were killed are reset.
        assert set(outcomes) <= {"200", "500", "503", RESET}, outcomes
        assert outcomes["200"] > 0.9 * outcomes.total(), outcomes
        # A front that is killed resets the requests that are open on its connections.
        assert outcomes[RESET] <= len(load.killed) * CLIENTS, (outcomes, load.killed, workers)
        wait_until(lambda: server.metric("panglot_requests_in_progress") == 0)
        assert change(server, "load") == 200
        assert {coming(server) for _ in range(3 * FRONTS)} == {200}
    runs = Counter(load.seen.read_text().split())
    assert max(runs.values()) <= most, runs.most_common(3)
    assert len(runs) >= outcomes["200"]


def come_and_go(load: Load) -> int:
    """Unload and load a model, again and again; how often that was done."""
    done = 0
    while not load.stop.is_set():
        done += change(load.server, "unload") == 200
        done += change(load.server, "load") == 200
    return done


def change(server: Server, action: str) -> int:
    """Load or unload the model that comes and goes: the status; 0 where the front that was asked has died."""
    with contextlib.suppress(httpx.TransportError):
        headers = {"authorization": f"Bearer {CONTROL}"}
        path = f"/v2/repository/models/coming/{action}"
        return httpx.post(server.url + path, headers=headers, timeout=120).status_code
    return 0


def coming(server: Server) -> int:
    """The status of a request to the model that comes and goes, on a connection of its own."""
    return httpx.post(f"{server.url}/models/coming/predict", json={"x": 1}, timeout=60).status_code


def disturb_at_random(load: Load, rounds: int) -> int:
    """Kill or stop a front or a worker, or reload all, so many times; how many workers were killed."""
    source, server, workers = random.Random(31), load.server, 0
    # The first front that is killed has requests of the clients.
    wait_until(lambda: bool(load.used))
    for turn in range(rounds):
        is_worker = turn % 2
        victims = server.workers() if is_worker else server.fronts()
        victims = [victim for victim in victims if turn or victim.pid in load.used]
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
                if is_worker:
                    workers += 1
                else:
                    load.killed[victim.pid] = time.monotonic()
                victim.kill()
        wait_until(lambda: len(server.fronts()) == FRONTS and ready(server) == WORKERS, 60)
    return workers


def ready(server: Server) -> float:
    return server.metric("panglot_workers", model="lent_calls", state="ready")
