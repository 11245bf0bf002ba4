"""`panglot bench` beside wrk on the same server, in turns: do they see the same? Usage: run.py [ROUNDS [SECONDS]]"""

from __future__ import annotations

import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
WRK_SCRIPT = HERE.parent / "overhead" / "post.lua"
CASES = (
    ("echo, 4 at once", HERE.parent / "overhead" / "packages" / "echo_single", [0.5] * 16, 4),
    ("echo, 64 at once", HERE.parent / "overhead" / "packages" / "echo_batch", [0.5] * 64, 64),
    ("2 ms each, 4 at once", HERE / "packages" / "wait", {"seconds": 0.002}, 4),
    ("10 ms each, 16 at once", HERE / "packages" / "wait", {"seconds": 0.01}, 16),
)


def main() -> None:
    rounds, seconds = (int(word) for word in (*sys.argv[1:], "5", "3")[:2])
    print(f"{'':24}{'wrk /s':>10}{'bench /s':>10}{'ratio':>8}{'generator CPU':>15}{'µs/request':>12}")
    for name, package, value, connections in CASES:
        with tempfile.TemporaryDirectory() as folder:
            body = Path(folder) / "body.json"
            body.write_text(json.dumps(value))
            process, url = serve(package)
            try:
                measured = [one_round(url, body, connections, seconds, Path(folder)) for _ in range(rounds)]
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)
        wrk, bench, cpu = (statistics.median(column) for column in zip(*measured, strict=True))
        ratio = statistics.median(ours / theirs for theirs, ours, _ in measured)
        print(f"{name:24}{wrk:10.0f}{bench:10.0f}{ratio:8.2f}{cpu * 100:13.0f} %{cpu / bench * 1e6:12.1f}", flush=True)


def serve(package: Path) -> tuple[subprocess.Popen[str], str]:
    words = [
        sys.executable,
        "-m",
        "panglot",
        "serve",
        str(package),
        "--port",
        "0",
        "--max-requests-per-connection",
        "1000000",
    ]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"is ready on (\S+)", line)
        if found:
            return process, found[1]
    raise SystemExit("the server did not start")


def one_round(url: str, body: Path, connections: int, seconds: int, folder: Path) -> tuple[float, float, float]:
    """Answers per second by wrk, by bench, and bench's own share of a core."""
    for _ in range(20):
        ask = urllib.request.Request(f"{url}/predict", body.read_bytes(), {"Content-Type": "application/json"})
        urllib.request.urlopen(ask, timeout=10).read()
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(WRK_SCRIPT), f"{url}/predict"]
    done = subprocess.run([*words, "--", str(body), "application/json"], capture_output=True, text=True, check=True)
    theirs = float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)[1])  # type: ignore[index]
    time.sleep(0.5)
    saved = folder / "bench.json"
    words = [sys.executable, "-m", "panglot", "bench", url, str(body), "--concurrency", str(connections)]
    words += ["--duration", str(seconds), "--warmup", "0.2", "--json", str(saved), "--no-autolog"]
    subprocess.run(words, check=True, capture_output=True)
    level = json.loads(saved.read_text())["levels"][0]
    return theirs, level["throughput"], level["generator"]["cpu"]


if __name__ == "__main__":
    main()
