"""Many mixed requests leave the server as it was, and the test would notice if they did not."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from support.server import LISTENING, PACKAGES, ROOT
from support.traffic import SOAK, times

WARM, MEASURED = times(6_000, 100_000), times(22_000, 900_000)
LEAKY = """
import sys
from panglot.web.http1 import exchange
kept = []
done = exchange.Exchange._done
def leaking(self, *rest):
    kept.append(bytes(200))
    done(self, *rest)
exchange.Exchange._done = leaking
from panglot.cli import main
main()
"""


class Front:
    """A server started by code of our own, so that it can be spoilt."""

    def __init__(self, code: str) -> None:
        arguments = ["serve", str(PACKAGES / "function"), "--port", "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self.process.stderr is not None
        self.port = 0
        for line in self.process.stderr:
            found = re.search(LISTENING, line)
            self.port = int(found[3]) if found else self.port
            if "is ready" in line:
                break
        self._reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._reader.start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self._reader.join(20)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def figures(self) -> tuple[int, int, int]:
        """Resident bytes, open files, threads."""
        front = psutil.Process(self.process.pid)
        return front.memory_info().rss, front.num_fds(), front.num_threads()


@contextmanager
def front(code: str) -> Iterator[Front]:
    running = Front(code)
    try:
        yield running
    finally:
        running.stop()


def request(chance: random.Random) -> bytes:
    """Mixed sizes; one in twenty is broken."""
    body = b"{" if chance.random() < 0.05 else b'"' + b"x" * chance.choice((1, 10, 100, 1000, 20_000)) + b'"'
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def client(port: int, count: int, seed: int) -> int:
    """Ask, and leave without waiting for the answer one time in a hundred."""
    chance = random.Random(seed)
    answered = 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        writer.write(request(chance))
        if chance.random() < 0.01:
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            continue
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.split(b" ", 2)[1] in (b"200", b"400")
        await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
        answered += 1
        if b"connection: close" in head:
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return answered


def drive(port: int, count: int, seed: int, clients: int = 24) -> int:
    async def all_clients() -> int:
        each = count // clients
        return sum(await asyncio.gather(*(client(port, each, seed * 1000 + number) for number in range(clients))))

    return asyncio.run(all_clients())


def growth(running: Front, count: int) -> tuple[float, int]:
    """Bytes kept per thousand requests, and in all, after a warm-up; files and threads must be as they were."""
    drive(running.port, WARM, 1)
    before = running.figures()
    answered = drive(running.port, count, 2)
    assert answered > count * 0.97
    after = running.figures()
    assert after[1] <= before[1] + 26, "open files"
    assert after[2] <= before[2], "threads"
    grown = after[0] - before[0]
    return grown / (count / 1000), grown


@pytest.mark.timeout(7200)
def test_memory_is_flat() -> None:
    with front("from panglot.cli import main; main()") as running:
        slope, grown = growth(running, MEASURED)
    assert slope < (1 if SOAK else 16) * 1024, f"{slope:.0f} bytes per thousand requests"
    assert grown < 32 * 1024 * 1024


def test_a_leak_would_be_noticed() -> None:
    with front(LEAKY) as running:
        slope, _ = growth(running, 20_000)
    assert slope > 150 * 1024, f"a leak of 200 bytes per request shows as {slope:.0f} bytes per thousand"
