"""Streams of which a test decides how large they are, how fast, and when they go on; everything else is echoed."""

from __future__ import annotations

import itertools
import time
from pathlib import Path


def predict(item):
    if "steps" in item:
        return steps(Path(item["steps"]))
    if "parts" in item:
        return parts(item)
    time.sleep(item.get("seconds", 0))
    return item


def parts(item):
    numbers = range(item["parts"]) if item["parts"] else itertools.count()
    for _ in numbers:
        yield "x" * item["size"]
        time.sleep(item.get("pause", 0))


def steps(folder):
    """Parts of the sizes that a test writes into one file after the other, until one has none."""
    for number in itertools.count():
        order = folder / str(number)
        while not order.exists():
            time.sleep(0.005)
        sizes = [int(size) for size in order.read_text().split()]
        for size in sizes:
            yield "x" * size
        (folder / f"{number} is done").touch()
        if not sizes or sizes[-1] == 0:
            return
