"""What recording costs: `panglot record` beside a bare proxy, and `serve --record` beside none, in CPU per request.

Rounds are interleaved, and ratios are taken inside each round.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "overhead"))

from contestants import panglot_command  # noqa: E402
from load import run_wrk  # noqa: E402
from measure import await_status, free_port  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

PACKAGE = HERE.parent / "overhead" / "packages" / "echo_single"
BODIES = {"64 floats": 64, "150 kB": 8000}
CONNECTIONS = 32


def cpu_per_request(pid: int, port: int, body: Path, seconds: int) -> float:
    """Microseconds of CPU that a process and its children use for each answer."""
    url = f"http://127.0.0.1:{port}/predict"
    run_wrk(url, body, "application/json", CONNECTIONS, 1)
    meter = CpuMeter(pid)
    seen = run_wrk(url, body, "application/json", CONNECTIONS, seconds)
    if seen.non_2xx or seen.socket_errors:
        raise SystemExit(f"{seen.non_2xx} answers not 2xx, {seen.socket_errors} socket errors")
    return meter.read().seconds / seen.requests * 1e6


@contextlib.contextmanager
def server(panglot: tuple[str, ...], scratch: Path, *flags: str) -> Iterator[tuple[int, int]]:
    port = free_port()
    command = [*panglot, "serve", str(PACKAGE), "--port", str(port), *flags]
    with running(command, scratch / "server.log", scratch) as process:
        await_status(process, port, "GET", "/v2/health/ready", None)
        yield process.pid, port


def proxied(command: list[str], port: int, body: Path, seconds: int, scratch: Path) -> float:
    with running(command, scratch / "proxy.log", scratch) as process:
        await_status(process, port, "GET", "/v2/health/ready", None)
        return cpu_per_request(process.pid, port, body, seconds)


def recorded_share(log: Path) -> float:
    """Of the pairs that sampling chose, the share that was written: dropped pairs make a recording look cheap."""
    said = re.search(r"(\d+) pairs? in [^;\n]*(?:; (\d+) were dropped)?", log.read_text())
    if said is None:
        return float("nan")
    written, dropped = int(said[1]), int(said[2] or 0)
    return written / max(1, written + dropped)


def round_of(
    panglot: tuple[str, ...], body: Path, seconds: int, scratch: Path
) -> tuple[dict[str, float], dict[str, float]]:
    """The figures of one round, and the shares of pairs that were written, by name."""
    figures: dict[str, float] = {}
    shares: dict[str, float] = {}
    with server(panglot, scratch) as (pid, service):
        figures["serve"] = cpu_per_request(pid, service, body, seconds)
        port = free_port()
        bare = [sys.executable, str(HERE / "bare_proxy.py"), str(port), str(service)]
        figures["bare proxy"] = proxied(bare, port, body, seconds, scratch)
        for name, flags in (("record", []), ("record --every 100", ["--every", "100"])):
            port = free_port()
            to = ["--to", f"http://127.0.0.1:{service}", "-o", str(scratch / f"{port}.rec"), "--port", str(port)]
            figures[name] = proxied([*panglot, "record", *to, *flags], port, body, seconds, scratch)
            shares[name] = recorded_share(scratch / "proxy.log")
    for name, flags in (("serve --record", []), ("serve --record-every 100", ["--record-every", "100"])):
        with server(panglot, scratch, "--record", str(scratch / f"{name.replace(' ', '')}.rec"), *flags) as (pid, port):
            figures[name] = cpu_per_request(pid, port, body, seconds)
        shares[name] = recorded_share(scratch / "server.log")
    for path in scratch.glob("*.rec"):
        path.unlink()
    return figures, shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--panglot", help="the panglot to measure (default: beside Python)")
    options = parser.parse_args()
    for title, count in BODIES.items():
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            body = scratch / "body"
            body.write_text(json.dumps([number / 7 for number in range(count)]))
            panglot = panglot_command(options.panglot)
            results = [round_of(panglot, body, options.seconds, scratch) for _ in range(options.rounds)]
        rounds = [figures for figures, _ in results]
        for name in rounds[0]:
            beside = "serve" if name.startswith("serve") else "bare proxy"
            ratio = statistics.median(figures[name] / figures[beside] for figures in rounds)
            values = [figures[name] for figures in rounds]
            spread = f"[{min(values):.0f} to {max(values):.0f}]"
            median = statistics.median(values)
            written = min(shares.get(name, 1.0) for _, shares in results)
            note = f", {written:.0%} of the pairs written" if name in results[0][1] else ""
            print(
                f"{title:10} {name:26} {median:7.0f} us/request {spread:>16}  {ratio:5.2f} x {beside}{note}", flush=True
            )


if __name__ == "__main__":
    main()
