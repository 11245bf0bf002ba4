"""The memory of a GPU before a model is served, while it is awake, asleep, and awake again, as nvidia-smi tells it.

Serves a script that holds 1 GiB with `--sleep-after 5s`. Ends with 1 where a sleeping model still holds memory; where
there is no GPU it says so. For a machine without a package index see carry.py.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent / "packages" / "gibibyte"
QUERY = ("--query-gpu=memory.used", "--format=csv,noheader,nounits")
WEIGHT = 1024
"""MiB that the script holds."""
TOLERANCE = 64
"""MiB by which the memory of a GPU may differ from what it was before; others may use it too."""
PATIENCE = 180.0
"""Seconds to wait for anything at most."""


def used() -> int | None:
    """MiB that are used on all GPUs; None where there is no GPU."""
    program = shutil.which("nvidia-smi")
    done = subprocess.run([program, *QUERY], capture_output=True, text=True) if program else None
    figures = done.stdout.split() if done is not None and done.returncode == 0 else []
    return sum(map(int, figures)) if figures and all(figure.isdigit() for figure in figures) else None


def wait_until(condition: Callable[[], bool], what: str) -> float:
    """How many seconds it took until something was true. Ends the program where it took too long."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE:
            sys.exit(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(0.1)
    return time.monotonic() - began


@contextmanager
def server(after: float, folder: str) -> Iterator[int]:
    """A running server's port. Ends the program where the server does not start."""
    command = [sys.executable, "-m", "panglot", "serve", str(PACKAGE), "--port", "0"]
    command += ["--sleep-after", f"{after:g}s", "--state-folder", folder]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    port, lines = 0, []
    try:
        for line in process.stderr:
            lines.append(line)
            if "listening on" in line:
                port = int(line.partition("listening on ")[2].split(",")[0].rpartition(":")[2])
            if "is ready on" in line:
                break
        else:
            sys.exit("".join(lines))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield port
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def request(port: int, method: str, path: str, value: Any = None) -> Any:
    """The answer to a request. Ends the program where it is refused."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    body = None if value is None else json.dumps(value)
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200:
        sys.exit(f"{method} {path}: {answer.status} {content.decode(errors='replace')}")
    return json.loads(content)


def show(moment: str, memory: int, before: int, note: str = "") -> None:
    print(f"{moment:<14} {memory:>7} MiB  {memory - before:>+6} MiB  {note}", flush=True)


def measure(before: int, after: float, wakes: int, port: int) -> bool:
    """Print what is used in each state; whether a sleeping model held nothing, and one that was awake its weight."""
    sound = True

    def ask(moment: str) -> None:
        nonlocal sound
        began = time.monotonic()
        answer = request(port, "POST", "/predict", {"number": 7})
        took = time.monotonic() - began
        memory = used() or 0
        sound = sound and answer == {"answer": 7, "bytes": WEIGHT << 20} and memory - before >= WEIGHT
        show(moment, memory, before, f"the request took {took:.2f} s")

    ask("awake")
    for _ in range(wakes):
        slept = wait_until(lambda: request(port, "GET", "/status.json")["state"] == "asleep", "the model falls asleep")
        # The driver gives memory back a moment after the process has ended.
        began = time.monotonic()
        while (used() or 0) - before > TOLERANCE and time.monotonic() - began < 10:
            time.sleep(0.1)
        memory = used() or 0
        sound = sound and memory - before <= TOLERANCE
        note = f"after {slept:.1f} s; its memory was back {time.monotonic() - began:.1f} s later"
        show("asleep", memory, before, note)
        ask("awake again")
    return sound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--after", type=float, default=5, help="seconds without requests until the model sleeps")
    parser.add_argument("--wakes", type=int, default=3)
    options = parser.parse_args()
    before = used()
    if before is None:
        print("there is no GPU here: nvidia-smi is missing, or tells nothing")
        return 0
    if importlib.util.find_spec("torch") is None:
        print("this needs torch with CUDA")
        return 2
    show("before", before, before)
    with tempfile.TemporaryDirectory() as folder, server(options.after, folder) as port:
        sound = measure(before, options.after, options.wakes, port)
    left = wait_until(lambda: (used() or 0) - before <= TOLERANCE, "the memory is back after the end of the server")
    show("after the end", used() or 0, before, f"{left:.1f} s later")
    print("a sleeping model holds no GPU memory" if sound else "NOT AS EXPECTED: see above")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
