"""How much slower requests become beside a full queue of jobs, and what the jobs get: rounds without and with jobs.

Requests come at random moments, at a fixed rate: by default 30 % of what two workers can do with calls of 5 ms. The
queue of jobs is never empty. Prints figures and asserts nothing. Ratios come from interleaved rounds of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "generator" / "packages" / "wait"
LEARN = 15.0
"""Seconds of load before anything counts: the server learns over ten seconds how many workers requests need."""


class Server:
    """A `panglot serve` on a free port, with its jobs in a folder."""

    def __init__(self, folder: str, workers: int, flags: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "panglot", "serve", str(PACKAGE), "--port", "0", "--workers", str(workers),
             "--jobs", folder, "--drain", "1", "--max-requests-per-connection", "1000000", *flags],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        self.port = 0
        ready = 0
        for line in self.process.stderr:
            if "listening on" in line:
                self.port = int(line.partition("listening on ")[2].split(",")[0].rpartition(":")[2])
            ready += " ready after " in line
            if ready == workers:
                break
        if ready < workers:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def submit(self, count: int, seconds: float) -> None:
        """Queue jobs that take so long each."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        for _ in range(count):
            connection.request("POST", "/predict", json.dumps({"seconds": seconds}), {"Prefer": "respond-async"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 202:
                raise SystemExit(f"a job was refused: {answer.status}")
        connection.close()

    def jobs(self) -> dict[str, int]:
        """How many jobs there are by state."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/jobs?limit=1")
        counts: dict[str, int] = json.loads(connection.getresponse().read())["counts"]
        connection.close()
        return counts

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Measured(NamedTuple):
    """Latencies of requests in milliseconds, and jobs that ended per second."""

    p50: float
    p99: float
    jobs: float


class Asker:
    """Asks at random moments, whatever the server does: requests that are slow do not slow the next ones down."""

    def __init__(self, port: int, rate: float, seconds: float) -> None:
        self.port = port
        self.rate = rate
        request = json.dumps({"seconds": seconds}).encode()
        head = "POST /predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        self.request = f"{head}content-length: {len(request)}\r\n\r\n".encode() + request
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.latencies: list[float] = []

    async def _ask(self) -> None:
        began = time.perf_counter()
        streams = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = streams
        writer.write(self.request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request was refused: {head!r}")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        self.latencies.append((time.perf_counter() - began) * 1000)
        self.idle.append(streams)

    async def run(self, seconds: float, chance: random.Random) -> None:
        """Ask for so many seconds, and wait for all answers."""
        asked = set()
        at = time.perf_counter()
        until = at + seconds
        while at < until:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            asked.add(asyncio.ensure_future(self._ask()))
            at += chance.expovariate(self.rate)
        await asyncio.gather(*asked)


def measure(options: argparse.Namespace, seed: int, with_jobs: bool) -> Measured:
    """A server of its own under load, without jobs or with a queue that does not empty."""
    call, job = options.call_ms / 1000, options.job_ms / 1000
    rate = options.load * options.workers / call
    # Enough for all time that requests leave, until the end.
    count = int(options.seconds * options.workers * (1 - options.load) / job * 1.5) + 10
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, options.workers, options.flags)
        try:

            async def load() -> tuple[Asker, int, float]:
                asker, chance = Asker(server.port, rate, call), random.Random(seed)
                await asker.run(LEARN, chance)
                if with_jobs:
                    submitting = asyncio.ensure_future(asyncio.to_thread(server.submit, count, job))
                    while not submitting.done():
                        await asker.run(0.2, chance)
                    await submitting
                asker.latencies.clear()
                before, began = await asyncio.to_thread(server.jobs), time.monotonic()
                await asker.run(options.seconds, chance)
                after, took = await asyncio.to_thread(server.jobs), time.monotonic() - began
                if with_jobs and not after.get("queued"):
                    raise SystemExit("the queue of jobs has become empty")
                return asker, after.get("done", 0) - before.get("done", 0), took

            asker, done, took = asyncio.run(load())
        finally:
            server.stop()
    cuts = statistics.quantiles(asker.latencies, n=100)
    return Measured(cuts[49], cuts[98], done / took)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--load", type=float, default=0.3, help="part of the workers' time that requests take")
    parser.add_argument("--call-ms", type=float, default=5)
    parser.add_argument("--job-ms", type=float, default=5)
    parser.add_argument("flags", nargs="*", help="further flags of panglot serve, such as --jobs-share 0.1")
    options = parser.parse_args(arguments)
    ratios, tails, shares = [], [], []
    for number in range(options.rounds):
        alone, beside = measure(options, number, False), measure(options, number, True)
        share = beside.jobs * options.job_ms / 1000 / options.workers
        ratios.append(beside.p50 / alone.p50)
        tails.append(beside.p99 / alone.p99)
        shares.append(share)
        print(
            f"round {number + 1}: p50 {alone.p50:.2f} ms, beside jobs {beside.p50:.2f}: {ratios[-1]:.2f} times; "
            f"p99 {alone.p99:.2f} ms, {beside.p99:.2f}: {tails[-1]:.2f} times; "
            f"{beside.jobs:.1f} jobs/s, {100 * share:.1f} % of the workers' time",
            flush=True,
        )
    ratio, tail, share = (statistics.median(column) for column in (ratios, tails, shares))
    print(f"median: p50 {ratio:.2f} times, p99 {tail:.2f} times, jobs have {100 * share:.1f} % of the workers' time")


if __name__ == "__main__":
    main()
