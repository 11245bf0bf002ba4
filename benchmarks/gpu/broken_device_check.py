"""What a CUDA fault that stays costs the requests after it, on a real GPU, with a real server.

An index out of range trips an assertion on the device: from then on every CUDA call of that process fails. The server
must replace the worker by itself; nearly all requests after the fault are answered.

    python benchmarks/gpu/broken_device_check.py [REQUESTS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

SCRIPT = """
import torch

table = torch.arange(1000, device="cuda")

def predict(item):
    return int(table[torch.tensor([item], device="cuda")].sum().item())
"""
PORT = 18377


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.py").write_text(SCRIPT)
        command = [sys.executable, "-m", "panglot", "serve", folder, "--port", str(PORT), "--device", "cuda:0"]
        with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as server:
            lines: list[str] = []
            assert server.stdout
            reader = threading.Thread(target=lambda pipe: lines.extend(pipe), args=(server.stdout,))
            reader.start()
            try:
                wait_until_ready(server)
                report(requests)
            finally:
                server.terminate()
                reader.join(30)
                print("".join(line for line in lines if "device" in line or "worker" in line or "died" in line))


def wait_until_ready(server: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < deadline:
        try:
            if ask("/v2/health/ready")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("the server did not become ready")


def report(requests: int) -> None:
    """Ask well, break the device, ask again one by one, and count the answers."""
    print("before:", ask("/predict", 7))
    print("the fault:", ask("/predict", 5000))
    began = time.monotonic()
    after: Counter[int] = Counter()
    first_success = 0.0
    for number in range(requests):
        status, value = ask("/predict", number)
        after[status] += 1
        if status == 200:
            assert value == number, (value, number)
            first_success = first_success or time.monotonic() - began
    print(f"{requests} requests after the fault: {dict(after)}; the first success after {first_success:.1f} s")


def ask(path: str, value: object = None) -> tuple[int, object]:
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=90) as reply:
            text = reply.read()
            return reply.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()[:200]


if __name__ == "__main__":
    main()
