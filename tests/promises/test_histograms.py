"""A bucket of a histogram holds everything up to its bound, the bound included, and nothing above it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from panglot.metrics.counters import FIRST, LAST, Histogram
from support.server import Server, serving, wait_until

SCRIPT = """
import os, time

class Model:
    def predict_batch(self, items):
        while any(gate and not os.path.exists(gate) for gate in items):
            time.sleep(0.005)
        return [len(items)] * len(items)
"""


def buckets(server: Server, name: str) -> dict[str, int]:
    """What is counted up to each bound."""
    found = re.findall(name + r'_bucket\{[^}]*le="([^"]+)"\} (\d+)', server.client.get("/metrics").text)
    return {bound: int(count) for bound, count in found}


def test_a_batch_of_four_counts_as_one_of_at_most_four(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    gate = tmp_path / "gate"
    with serving(tmp_path, "--max-batch", "4") as server, ThreadPoolExecutor(5) as clients:
        first = clients.submit(server.predict, str(gate))
        wait_until(lambda: server.metric("panglot_batches_released_total") == 1)
        others = [clients.submit(server.predict, "") for _ in range(4)]
        wait_until(lambda: server.metric("panglot_queue_length") == 4)
        gate.touch()
        assert [answer.result().json() for answer in (first, *others)] == [1, 4, 4, 4, 4]
        counted = buckets(server, "panglot_batch_size")
    assert [counted[bound] for bound in ("1", "2", "4", "8", "+Inf")] == [1, 1, 2, 2, 2]


def test_every_whole_number_lies_in_the_bucket_of_its_bound() -> None:
    for value in (*range(1, 300), *(2**n + near for n in range(9, LAST - 1) for near in (-1, 0, 1))):
        counted = Histogram()
        counted.add(value)
        for first in (0, FIRST):
            lines = counted.lines("x", {}, first, LAST, 1)
            told = [line.endswith(" 1") for line, _ in zip(lines, range(first, LAST), strict=False)]
            assert told == [value <= 2**n for n in range(first, LAST)], value
