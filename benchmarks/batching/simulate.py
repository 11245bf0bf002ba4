"""Does waiting for a fuller batch pay? The same as run.py, thought through instead of measured.

python benchmarks/batching/simulate.py [--svg docs/pictures/batching.svg]

One worker that takes 40 ms per call and 1 ms per item, batches of up to 32, requests that come by chance. A batch goes
out when the worker is free and it is full, or its oldest item has waited for `max_wait_ms`. Seeded: every run says the
same, and no neighbour disturbs it.
"""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path

from run import LOADS, MOST, WAITS, svg, table

MOST_ITEMS = 32
REQUESTS = 40_000


def latencies(rate: float, wait: float) -> list[float]:
    """How long each request took, in seconds, at so many requests a second."""
    source = random.Random(1)
    arrivals = [0.0]
    for _ in range(REQUESTS):
        arrivals.append(arrivals[-1] + source.expovariate(rate))
    took: list[float] = []
    free = 0.0
    first = 0
    while first < len(arrivals):
        full_at = arrivals[first + MOST_ITEMS - 1] if first + MOST_ITEMS <= len(arrivals) else float("inf")
        begins = max(free, min(arrivals[first] + wait, full_at))
        beyond = first
        while beyond < len(arrivals) and beyond < first + MOST_ITEMS and arrivals[beyond] <= begins:
            beyond += 1
        free = begins + 0.040 + 0.001 * (beyond - first)
        took += [free - arrival for arrival in arrivals[first:beyond]]
        first = beyond
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--svg", type=Path, help="write the plot there")
    options = parser.parse_args()
    figures = {wait: [1000 * statistics.fmean(latencies(MOST * load, wait / 1000)) for load in LOADS] for wait in WAITS}
    print(table(figures))
    if options.svg:
        options.svg.write_text(svg(figures))


if __name__ == "__main__":
    main()
