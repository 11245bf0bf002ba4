"""JPEGs decoded and classified on the GPU: how much of a script's own bare loop is left when it is served.

Prints pictures per second of the script served by one worker, and by several that share the card, with and without MPS,
each beside the share of what the script does in a loop of its own. Processors change their speed by half within
minutes, and from process to process: so loop and load take turns in the same process.
"""

from __future__ import annotations

import argparse
import functools
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
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import crowd

PACKAGE = Path(__file__).parent / "packages" / "gpu_decode"
LOOP = {"Content-Type": "application/x-loop"}


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


def serving(flags: list[str], options: argparse.Namespace) -> tuple[subprocess.Popen[str], int]:
    """The script served, and the port, once all its workers are ready."""
    command = [sys.executable, "-m", "panglot", "serve", str(PACKAGE), "--port", "0", *flags]
    command += ["--max-batch", str(options.batch), "--queue", "4096", "--timeout", "60"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    port, lines, wanted = 0, [], int(flags[flags.index("--workers") + 1]) if "--workers" in flags else 1
    for line in server.stderr:
        lines.append(line)
        if "listening on" in line:
            port = int(line.partition("listening on ")[2].split(",")[0].rpartition(":")[2])
        if port and sum(" ready after " in line for line in lines) >= wanted:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, port
    raise SystemExit(f"it did not start:\n{''.join(lines)}")


def bare_loop(port: int, body: bytes) -> float:
    """What the script does in a loop of its own, in its worker, while nobody asks for anything else."""
    time.sleep(1)  # Until nothing of the load is left in the queue.
    request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", body, LOOP)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return float(answer.read())


def measured(title: str, body: bytes, flags: list[str], options: argparse.Namespace) -> None:
    """Serve the script. Have its own loop and the load take turns in the same process, and print what was seen."""
    server, port = serving(flags, options)
    ask = functools.partial(crowd.ask, port, "/predict", body, "image/jpeg", options.clients, options.connections)
    loops, rates, ratios = [], [], []
    try:
        ask(2)
        loops.append(bare_loop(port, body))
        for _ in range(options.rounds):
            seen = crowd.ask(
                port, "/predict", body, "image/jpeg", options.clients, options.connections, options.seconds
            )
            if seen.failed:
                print(f"{title}: {seen.failed} FAILED")
            loops.append(bare_loop(port, body))
            rates.append(seen.rate)
            ratios.append(2 * seen.rate / (loops[-2] + loops[-1]))
    finally:
        server.terminate()
        server.wait()
    of_loop = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"{title:34} {statistics.median(rates):6.0f}/s   {statistics.median(ratios):.2f} of the loop ({of_loop})   "
          f"loop {min(loops):.0f} to {max(loops):.0f}/s   p99 {seen.p99_ms:.0f} ms", flush=True)  # fmt: skip


def cases(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """What is measured: a title and the flags of each server."""
    yield "one worker", []
    if not options.no_variants:
        yield "one worker, nothing sent ahead", ["--no-ahead"]
        yield "one worker, no shared memory", ["--share-from", "0"]
    for count in filter(None, options.workers.split(",")):
        for fronts in options.fronts.split(","):
            behind = ["--fronts", fronts] if fronts != "1" else []
            title = f"{count} workers" + (f", {fronts} fronts" if behind else "")
            yield title, ["--workers", count, *behind]
            if shutil.which("nvidia-cuda-mps-control") and not options.no_variants:
                yield f"{title}, MPS", ["--workers", count, *behind, "--mps"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4, help="of load, each time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--bytes", type=int, default=51_000)
    parser.add_argument("--clients", type=int, default=6, help="processes of clients")
    parser.add_argument("--connections", type=int, default=384)
    parser.add_argument("--workers", default="2,3", help="how many workers share the card, besides one")
    parser.add_argument("--fronts", default="1", help="how many fronts those workers are behind")
    parser.add_argument("--no-variants", action="store_true", help="leave out MPS, --no-ahead and --share-from 0")
    options = parser.parse_args()
    body = picture(options.bytes)
    print(f"a 640x480 JPEG of {len(body)} bytes, batches of {options.batch}, {options.connections} connections, "
          f"{os.cpu_count()} cores")  # fmt: skip
    for title, flags in cases(options):
        measured(title, body, flags, options)


if __name__ == "__main__":
    if importlib.util.find_spec("torchvision") is None:
        sys.exit("this needs torch and torchvision with CUDA")
    main()
