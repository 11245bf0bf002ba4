"""ResNet-50 on a GPU over HTTP, beside the same net in a bare loop on the same machine.

Prints pictures per second of the bare loop (no HTTP, no decoding), of one process, and of a pipeline; the share of
the time the GPU was idle; and which processes have the GPU open, which must be the ones that infer and no other.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

HERE = Path(__file__).parent
PACKAGE = HERE / "packages" / "resnet"


def bare_loop(seconds: float) -> float:
    """Pictures per second of the net alone, 64 at a time, from memory of the main processor."""
    code = (
        "import sys, time, importlib.util, numpy as np, torch\n"
        "spec = importlib.util.spec_from_file_location('p', sys.argv[1])\n"
        "p = importlib.util.module_from_spec(spec); spec.loader.exec_module(p)\n"
        "m = p.Model(); m.load(); batch = np.random.default_rng(0).integers(0, 255, (64, 224, 224, 3), np.uint8)\n"
        "end = time.monotonic() + float(sys.argv[2]); n = 0; began = time.monotonic()\n"
        "while time.monotonic() < end: m.classes(batch); n += 64\n"
        "print(n / (time.monotonic() - began))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(PACKAGE / "predict.py"), str(seconds)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    return float(done.stdout)


class Idle(threading.Thread):
    """Samples how busy the GPU is."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[int] = []
        self.process = subprocess.Popen(
            ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.samples.append(int(line))

    def share(self) -> float:
        self.process.terminate()
        return 100 - sum(self.samples) / max(1, len(self.samples))


def client(
    port: int, picture: bytes, connections: int, until: float, results: multiprocessing.Queue[tuple[int, list[float]]]
) -> None:
    """One process of clients that ask without pause."""
    latencies: list[float] = []

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < until:
            began = time.monotonic()
            connection.request("POST", "/predict", picture, {"Content-Type": "image/jpeg"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            latencies.append(time.monotonic() - began)

    threads = [threading.Thread(target=ask) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((len(latencies), latencies))


def serve(title: str, picture: bytes, flags: list[str], seconds: float, clients: int, connections: int) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "panglot", "serve", str(PACKAGE), "--port", "0", "--max-batch", "64", *flags],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    port, lines = 0, []
    for line in server.stderr:
        lines.append(line)
        if "listening on" in line:
            port = int(line.partition("listening on ")[2].split(",")[0].rpartition(":")[2])
        if "is ready on" in line:
            break
    else:
        print("".join(lines))
        return
    threading.Thread(target=server.stderr.read, daemon=True).start()
    time.sleep(3)
    results: multiprocessing.Queue[tuple[int, list[float]]] = multiprocessing.Queue()
    idle = Idle()
    until = time.monotonic() + seconds
    asking = [multiprocessing.Process(target=client, args=(port, picture, connections, until, results))
              for _ in range(clients)]  # fmt: skip
    began = time.monotonic()
    for process in asking:
        process.start()
    idle.start()
    time.sleep(seconds / 2)
    front = psutil.Process(server.pid)
    load = {process.pid: process.cpu_percent() for process in (front, *front.children())}
    time.sleep(1)
    load = {process.pid: process.cpu_percent() for process in (front, *front.children()) if process.pid in load}
    users = [process.pid for process in (front, *front.children()) if opens_gpu(process.pid)]
    found = [results.get() for _ in asking]
    took = time.monotonic() - began
    latencies = sorted(latency for _, some in found for latency in some)
    total = len(latencies)
    metrics = http.client.HTTPConnection("127.0.0.1", port)
    metrics.request("GET", "/metrics")
    text = metrics.getresponse().read().decode()
    sums = [
        line for line in text.splitlines() if line.startswith(("panglot_batch_size_sum", "panglot_batch_size_count"))
    ]
    middle, high = latencies[total // 2] * 1e3, latencies[total * 99 // 100] * 1e3
    print(f"{title}: {total / took:.0f} pictures/s, p50 {middle:.1f} ms, p99 {high:.1f} ms")
    print(f"   GPU idle {idle.share():.0f} % of the time, front {load[server.pid]:.0f} % of a core")
    print("   " + "; ".join(sums))
    print(f"   processes with the GPU open: {len(users)} of {len(load)} (front among them: {server.pid in users})")
    server.terminate()
    server.wait()


def opens_gpu(pid: int) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    links = []
    for entry in folder.iterdir():
        try:
            links.append(os.readlink(entry))
        except OSError:
            continue
    return any(link.startswith("/dev/nvidia") for link in links)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--decoders", type=int, default=max(1, (os.cpu_count() or 2) - 4))
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--connections", type=int, default=48)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture.jpg"
        subprocess.run([sys.executable, str(HERE.parent / "pools" / "picture.py"), str(file)], check=True)
        picture = file.read_bytes()
    print(f"a 640x480 JPEG of {len(picture)} bytes; {os.cpu_count()} cores")
    print(f"bare loop, batches of 64, no decoding: {bare_loop(options.seconds):.0f} pictures/s")
    serve("one process", picture, [], options.seconds, options.clients, options.connections)
    for decoders in sorted({options.decoders // 2, options.decoders}):
        row = ["--pools", f"preprocess={decoders},inference=1"]
        serve(f"preprocess={decoders}", picture, row, options.seconds, options.clients, options.connections)
    print(f"bare loop again: {bare_loop(options.seconds):.0f} pictures/s")


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        sys.exit("this needs torch and torchvision with CUDA")
    main()
