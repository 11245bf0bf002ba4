"""What a pipeline brings and costs: throughput of one process against several pools, and the price of handing over.

Prints figures and asserts nothing. Ratios come from interleaved rounds of one run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

HERE = Path(__file__).parent
CLIENTS = 16


class Server:
    """A `panglot serve` on a free port."""

    def __init__(self, path: Path, *flags: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "panglot", "serve", str(path), "--port", "0", *flags],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        self.port = 0
        for line in self.process.stderr:
            if "listening on" in line:
                self.port = int(line.partition("listening on ")[2].split(",")[0].rpartition(":")[2])
            if "is ready on" in line:
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def cpu(self) -> float:
        """Seconds all its processes have used."""
        front = psutil.Process(self.process.pid)
        return sum(sum(process.cpu_times()[:2]) for process in (front, *front.children(recursive=True)))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def load(server: Server, body: bytes, content_type: str, seconds: float, clients: int = CLIENTS) -> tuple[float, float]:
    """Requests per second, and CPU seconds of the server per request, of clients that ask without pause."""
    done = [0] * clients
    until = time.monotonic() + seconds

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        while time.monotonic() < until:
            connection.request("POST", "/predict", body, {"Content-Type": content_type})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            done[number] += 1
        connection.close()

    used, began = server.cpu(), time.monotonic()
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum(done)
    return total / (time.monotonic() - began), (server.cpu() - used) / max(1, total)


def compare(title: str, path: Path, body: bytes, content_type: str, row: str, rounds: int, seconds: float) -> None:
    """One process against a row, round by round."""
    one, many = Server(path), Server(path, "--pools", row)
    try:
        ratios, rates = [], []
        for server in (one, many):
            load(server, body, content_type, 1)
        for _ in range(rounds):
            first, _ = load(one, body, content_type, seconds)
            second, _ = load(many, body, content_type, seconds)
            ratios.append(second / first)
            rates.append((first, second))
        middle = sorted(zip(ratios, rates, strict=True))[len(ratios) // 2]
        print(f"{title}: one process {middle[1][0]:.0f}/s, {row} {middle[1][1]:.0f}/s: {middle[0]:.2f} times")
    finally:
        one.stop()
        many.stop()


def price(rounds: int, seconds: float) -> None:
    """CPU of the whole tree for handing one 1x3x224x224 float32 to the next pool, beyond handing over a number."""
    path = HERE / "packages" / "handing"
    server = Server(path, "--pools", "preprocess=1")
    try:
        costs: dict[str, list[float]] = {"large": [], "small": []}
        for body in (b"0", b"1"):
            load(server, body, "application/json", 1, 4)
        for _ in range(rounds):
            costs["small"].append(load(server, b"0", "application/json", seconds, 4)[1])
            costs["large"].append(load(server, b"1", "application/json", seconds, 4)[1])
        small, large = (statistics.median(costs[name]) * 1e6 for name in ("small", "large"))
        print(f"handing over 602 kB: {large - small:.0f} us CPU in the whole tree ({large:.0f} against {small:.0f})")
    finally:
        server.stop()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args(arguments)
    value = json.dumps({"n": 1}).encode()
    compare("sleep 20 ms + 5 ms", HERE / "packages" / "sleeping", value, "application/json", "preprocess=4",
            options.rounds, options.seconds)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.jpg"
        subprocess.run([sys.executable, str(HERE / "picture.py"), str(picture)], check=True)
        compare("640x480 JPEG + ONNX", HERE / "packages" / "pictures", picture.read_bytes(), "image/jpeg",
                "preprocess=2", options.rounds, options.seconds)  # fmt: skip
    price(options.rounds, options.seconds)


if __name__ == "__main__":
    main()
