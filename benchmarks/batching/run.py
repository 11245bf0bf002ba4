"""Does waiting for a fuller batch pay? Latency over load, for several `max_wait_ms`, and a plot of it.

python benchmarks/batching/run.py [--seconds 3] [--svg docs/pictures/batching.svg]

The script sleeps 40 ms per call and 1 ms per item, in batches of up to 32: at most 444 requests a second. Requests
come by chance (`panglot bench --rate`), and their latency counts from the moment they were meant to go out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "packages" / "sleeper"
WAITS = (0, 10, 40, 100)
MOST = 32 / (0.040 + 0.001 * 32)
LOADS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
LABELLED = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
COLOURS = ("#3949ab", "#00897b", "#fb8c00", "#e53935")
WIDE, HIGH, LEFT, BELOW = 720, 360, 60, 50
MOST_MS = 160.0

Figures = Mapping[int, Sequence[float]]
"""The mean latencies in ms by `max_wait_ms`, in the order of LOADS."""


def measured(wait: int, seconds: float) -> list[float]:
    """Mean latencies at every load."""
    rates = ",".join(f"{MOST * load:.0f}" for load in LOADS)
    panglot = str(Path(sys.executable).parent / "panglot")
    command = [
        panglot, "bench", str(PACKAGE), "1", "--rate", rates, "--duration", str(seconds), "--max-wait-ms", str(wait),
        "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"waiting {wait} ms: requests failed: {done.stderr}", file=sys.stderr)
    return [level["latency"]["mean"] for level in json.loads(done.stdout)["levels"]]


def table(figures: Figures) -> str:
    head = "| `max_wait_ms` | " + " | ".join(f"{load:.0%}" for load in LOADS) + " |"
    rows = [f"| {wait} | " + " | ".join(f"{ms:.0f}" for ms in line) + " |" for wait, line in figures.items()]
    return "\n".join([head, "|---|" + "---|" * len(LOADS), *rows])


def svg(figures: Figures) -> str:
    """The same as a plot."""
    right, top = WIDE - 130, 20
    x = [LEFT + (right - LEFT) * load for load in LOADS]

    def y(ms: float) -> float:
        return HIGH - BELOW - (HIGH - BELOW - top) * min(ms, MOST_MS) / MOST_MS

    parts = [f'<rect width="{WIDE}" height="{HIGH}" fill="#ffffff"/>']
    for ms in range(0, int(MOST_MS) + 1, 40):
        parts.append(f'<path d="M{LEFT} {y(ms):.0f}H{right}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(ms) + 4:.0f}" text-anchor="end">{ms}</text>')
    parts += [
        f'<text x="{place:.0f}" y="{HIGH - BELOW + 20}" text-anchor="middle">{load:.0%}</text>'
        for place, load in zip(x, LOADS, strict=True)
        if load in LABELLED
    ]
    parts.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{HIGH - 8}" text-anchor="middle">load</text>')
    parts.append(f'<text x="{LEFT}" y="14">mean latency, ms</text>')
    for (wait, line), colour in zip(figures.items(), COLOURS, strict=True):
        points = " ".join(f"{place:.0f},{y(ms):.0f}" for place, ms in zip(x, line, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        at = 40 + 22 * WAITS.index(wait)
        parts.append(f'<text x="{right + 12}" y="{at}" fill="{colour}">waits {wait} ms</text>')
    style = 'font-family="sans-serif" font-size="13" fill="#333333"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" {style}>\n{body}\n</svg>\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load (default 3)")
    parser.add_argument("--svg", type=Path, help="write the plot there")
    options = parser.parse_args()
    figures = {wait: measured(wait, options.seconds) for wait in WAITS}
    print(table(figures))
    if options.svg:
        options.svg.write_text(svg(figures))


if __name__ == "__main__":
    main()
