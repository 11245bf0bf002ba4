"""How much of a script's own speed is left when it is served: scripts that sleep, as for a GPU, under load from wrk.

For each case: the rate of the script called in a bare loop with the same bodies, the rate served, and their ratio.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "overhead"))

from contestants import panglot_command  # noqa: E402
from load import run_wrk  # noqa: E402
from measure import await_status, free_port  # noqa: E402
from processes import CpuMeter, running  # noqa: E402

PACKAGE = HERE / "packages" / "sleeper"


@dataclass(frozen=True)
class Case:
    """So many bodies of so many bytes in one call, which sleeps."""

    milliseconds: float
    batch: int
    size: int

    @property
    def title(self) -> str:
        return f"{self.milliseconds:g} ms per {self.batch} x {self.size / 1000:g} kB"


CASES = (Case(32, 128, 50_000), Case(16, 128, 50_000), Case(80, 32, 500_000), Case(200, 8, 5_000_000))


class Body:
    """What the bare loop gives the script in place of a file."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)

    def __len__(self) -> int:
        return len(self.view)


def raw_loop(case: Case, seconds: float) -> float:
    """Bodies per second of the script alone."""
    spec = importlib.util.spec_from_file_location("sleeper", PACKAGE / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model, items = module.Model(), [Body(os.urandom(case.size)) for _ in range(case.batch)]
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        count += len(model.predict_batch(items))
    return count / (time.monotonic() - began)


def served(case: Case, seconds: int, command: tuple[str, ...], connections: int, flags: list[str]) -> tuple[float, str]:
    """Bodies per second through the server, and how busy its processes were."""
    port = free_port()
    arguments = [*command, "serve", str(PACKAGE), "--port", str(port), "--max-batch", str(case.batch), *flags]
    arguments += ["--max-batch-bytes", str(case.batch * case.size)]
    with tempfile.TemporaryDirectory() as scratch:
        body, log = Path(scratch) / "body", Path(scratch) / "log"
        body.write_bytes(os.urandom(case.size))
        with running(arguments, log, Path(scratch)) as process:
            await_status(process, port, "GET", "/v2/health/ready", None)
            url = f"http://127.0.0.1:{port}/predict"
            run_wrk(url, body, "application/octet-stream", connections, 1)
            meter = CpuMeter(process.pid)
            seen = run_wrk(url, body, "application/octet-stream", connections, seconds)
            used = meter.read().seconds
    if seen.non_2xx or seen.socket_errors:
        return 0.0, f"{seen.non_2xx} answers not 2xx, {seen.socket_errors} socket errors"
    return seen.requests / seen.seconds, f"p99 {seen.p99_ms:.0f} ms, {100 * used / seen.seconds:.0f} % of a core"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20, help="of load; its first answers are a call late")
    parser.add_argument("--touch", action="store_true", help="the script reads every byte too")
    parser.add_argument("--panglot", help="the panglot to measure (default: beside Python)")
    parser.add_argument("flags", nargs="*", help="further flags of panglot serve")
    options = parser.parse_args()
    os.environ["TOUCH"] = "1" if options.touch else "0"
    for case in CASES:
        os.environ["SLEEP_MS"] = f"{case.milliseconds:g}"
        raws, rates, note = [], [], ""
        for _ in range(options.rounds):
            raws.append(raw_loop(case, 1.0))
            rate, note = served(case, options.seconds, panglot_command(options.panglot), 3 * case.batch, options.flags)
            rates.append(rate / raws[-1])
        raw, ratio = statistics.median(raws), statistics.median(rates)
        print(f"{case.title:28}  raw loop {raw:7.0f}/s  served {raw * ratio:7.0f}/s  {ratio:.2f}  ({note})", flush=True)


if __name__ == "__main__":
    main()
