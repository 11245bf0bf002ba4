"""What a picture costs over HTTP: the same network as a graph and in the plain dialect, in one interleaved run."""

from __future__ import annotations

import contextlib
import http.client
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parents[1] / "examples" / "megflow" / "digits" / "seven.png"
PATHS = {"graph_digits": "/analyze/seven", "plain_digits": "/predict"}
CLIENTS = 8


@contextlib.contextmanager
def served(package: str) -> Iterator[tuple[psutil.Process, int]]:
    """The server process and its port."""
    command = [sys.executable, "-m", "panglot", "serve", str(HERE / package), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port, ready = 0, False
            while not ready:
                line = process.stderr.readline()
                assert line, "the server did not start"
                found = re.search(r"listening on http://\S+:(\d+)", line)
                port, ready = int(found[1]) if found else port, "is ready on" in line
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield psutil.Process(process.pid), port
        finally:
            process.terminate()


def ask(package: str, port: int, count: int) -> None:
    body = PICTURE.read_bytes()

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for _ in range(count // CLIENTS):
            connection.request("POST", PATHS[package], body, {"content-type": "image/png"})
            answer = connection.getresponse()
            assert b'"digit": 7' in answer.read(), answer.status
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cpu(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def compare(rounds: int = 5, requests: int = 800) -> dict[str, float]:
    """CPU microseconds of the whole process tree per request, and how the graph compares; medians of the rounds."""
    found: dict[str, list[float]] = {name: [] for name in PATHS}
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(served(name)) for name in PATHS}
        for name, (_, port) in servers.items():
            ask(name, port, 200)
        for _ in range(rounds):
            for name, (process, port) in servers.items():
                time.sleep(0.05)
                before = cpu(process)
                ask(name, port, requests)
                found[name].append((cpu(process) - before) / requests * 1e6)
    pairs = zip(found["graph_digits"], found["plain_digits"], strict=True)
    return {name: statistics.median(values) for name, values in found.items()} | {
        "ratio": statistics.median(graph / plain for graph, plain in pairs)
    }


if __name__ == "__main__":
    figures = compare()
    print(
        f"a picture over HTTP: graph {figures['graph_digits']:.0f} µs CPU, plain {figures['plain_digits']:.0f} µs, "
        f"{figures['ratio']:.2f} times"
    )
