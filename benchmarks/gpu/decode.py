"""JPEGs decoded and classified on the GPU: how much of a script's own bare loop is left when it is served.

Prints pictures per second of the script called in a loop, of the same script served by one worker, and by several that
share the card, with and without MPS; each beside the share of the bare loop of the same minute.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import crowd
import psutil

PACKAGE = Path(__file__).parent / "packages" / "gpu_decode"
RAW = """
import sys, time, importlib.util
spec = importlib.util.spec_from_file_location("p", sys.argv[1])
p = importlib.util.module_from_spec(spec); spec.loader.exec_module(p)
m = p.Model(); m.load(); body = open(sys.argv[2], "rb").read(); batch = int(sys.argv[4])
bodies = [memoryview(bytes(bytearray(body))) for _ in range(batch)]
for _ in range(3): m.run(bodies)
began = time.monotonic(); n = 0
while time.monotonic() - began < float(sys.argv[3]): n += len(m.run(bodies))
print(n / (time.monotonic() - began))
"""


def picture(size: int) -> bytes:
    """A JPEG of about so many bytes, with something in it to decode."""
    from PIL import Image

    chance = random.Random(1)
    small = Image.frombytes("RGB", (80, 60), chance.randbytes(80 * 60 * 3))
    image = small.resize((640, 480), Image.Resampling.BICUBIC)
    for quality in range(95, 5, -1):
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=quality)
        if buffer.tell() <= size:
            return buffer.getvalue()
    raise SystemExit("no such picture")


def raw_loop(file: Path, seconds: float, batch: int) -> float:
    command = [sys.executable, "-c", RAW, str(PACKAGE / "predict.py"), str(file), str(seconds), str(batch)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def served(title: str, body: bytes, flags: list[str], options: argparse.Namespace, raw: float) -> float:
    """Serve the script, load it, and print what was seen; the rate."""
    command = [sys.executable, "-m", "panglot", "serve", str(PACKAGE), "--port", "0", *flags]
    command += ["--max-batch", str(options.batch), "--queue", "4096"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    port, lines, wanted = 0, [], int(flags[flags.index("--workers") + 1]) if "--workers" in flags else 1
    ready = 0
    for line in server.stderr:
        lines.append(line)
        if "listening on" in line:
            port = int(line.partition("listening on ")[2].split(",")[0].rpartition(":")[2])
        ready += " ready after " in line
        if port and ready >= wanted:
            break
    else:
        print(f"{title:40} did not start:\n{''.join(lines)}")
        return 0.0
    threading.Thread(target=server.stderr.read, daemon=True).start()
    time.sleep(1)
    try:
        crowd.ask(port, "/predict", body, "image/jpeg", options.clients, options.connections, 2)
        processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
        for process in processes:
            process.cpu_percent()
        seen = crowd.ask(port, "/predict", body, "image/jpeg", options.clients, options.connections, options.seconds)
        busy = [process.cpu_percent() for process in processes if process.is_running()]
    finally:
        server.terminate()
        server.wait()
    cores = ", ".join(f"{share:.0f} %" for share in busy)
    failed = f"; {seen.failed} FAILED" if seen.failed else ""
    print(f"{title:40} {seen.rate:8.0f}/s  {seen.rate / raw:.2f} of the loop   p50 {seen.p50_ms:.0f} ms, "
          f"p99 {seen.p99_ms:.0f} ms; cores: {cores}{failed}", flush=True)  # fmt: skip
    return seen.rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--bytes", type=int, default=51_000)
    parser.add_argument("--clients", type=int, default=6, help="processes of clients")
    parser.add_argument("--connections", type=int, default=384)
    parser.add_argument("--workers", default="2,3", help="how many workers share the card, besides one")
    options = parser.parse_args()
    body = picture(options.bytes)
    file = Path(os.environ.get("TMPDIR", "/tmp")) / "panglot-picture.jpg"
    file.write_bytes(body)
    print(f"a 640x480 JPEG of {len(body)} bytes, batches of {options.batch}, {options.connections} connections, "
          f"{os.cpu_count()} cores")  # fmt: skip
    cases = [("one worker", []), ("one worker, nothing sent ahead", ["--no-ahead"]),
             ("one worker, no shared memory", ["--share-from", "0"])]  # fmt: skip
    for count in filter(None, options.workers.split(",")):
        cases.append((f"{count} workers", ["--workers", count]))
        if shutil.which("nvidia-cuda-mps-control"):
            cases.append((f"{count} workers, MPS", ["--workers", count, "--mps"]))
    raws: list[float] = []
    for _ in range(options.rounds):
        raws.append(raw_loop(file, options.seconds, options.batch))
        print(f"{'the bare loop of the script':40} {raws[-1]:8.0f}/s", flush=True)
        for title, flags in cases:
            served(title, body, flags, options, raws[-1])
    print(f"{'the bare loop again':40} {raw_loop(file, options.seconds, options.batch):8.0f}/s; "
          f"median of the loops {statistics.median(raws):.0f}/s")  # fmt: skip


if __name__ == "__main__":
    if importlib.util.find_spec("torchvision") is None:
        sys.exit("this needs torch and torchvision with CUDA")
    main()
