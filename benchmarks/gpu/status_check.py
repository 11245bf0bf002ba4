"""Whether the status page knows how much memory of a real GPU each worker holds.

Two workers take a gigabyte each; what `/status.json` says of them is printed beside what nvidia-smi says.

    python benchmarks/gpu/status_check.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SCRIPT = """
import torch

def load():
    global held
    held = torch.ones(1 << 28, device="cuda")

def predict(item):
    return float(held[0])
"""
PORT = 18378
SMI = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv")


def told() -> list[dict[str, object]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/status.json", timeout=20) as answer:
        workers: list[dict[str, object]] = json.load(answer)["workers"]
    return workers


def ready(server: subprocess.Popen[bytes]) -> bool:
    try:
        return len(told()) == 2 and all(worker["state"] == "ready" for worker in told())
    except OSError:
        assert server.poll() is None, "the server has ended"
        return False


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.py").write_text(SCRIPT)
        flags = ("--port", str(PORT), "--device", "cuda:0", "--workers", "2")
        with subprocess.Popen([sys.executable, "-m", "panglot", "serve", folder, *flags]) as server:
            deadline = time.monotonic() + 120
            while not ready(server) and time.monotonic() < deadline:
                time.sleep(0.5)
            for worker in told():
                print({name: worker.get(name) for name in ("index", "pid", "state", "memory", "gpu")})
            print(subprocess.run(SMI, capture_output=True, text=True, check=False).stdout)
            subprocess.run([sys.executable, "-m", "panglot", "top", f"http://127.0.0.1:{PORT}", "--once"], check=False)
            server.terminate()


if __name__ == "__main__":
    main()
