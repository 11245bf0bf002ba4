"""What is measured: scripts, bodies and loads, and what the figures should be."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
OVERHEAD = HERE.parent / "overhead"
sys.path.insert(0, str(OVERHEAD))

from load import OCTETS, Scenario, scenarios  # noqa: E402


@dataclass(frozen=True)
class Case:
    """One script under one load."""

    name: str
    title: str
    package: Path
    scenario: Scenario
    workers: int = 8
    connections: int = 256
    close: bool = False
    """Whether each request has a connection of its own."""
    skewed: bool = False
    """Whether all load is on the connections of one front."""
    mosec: tuple[str, ...] = ()
    """The script of mosec with the same work, and its flags; none: mosec has no such case."""


def length(size: int) -> Scenario:
    body = random.Random(size).randbytes(size)
    return Scenario(f"length-{size}", f"{size} bytes, answered by their length", body, OCTETS, b"%d" % size)


def cases() -> list[Case]:
    floats = scenarios()["json"]
    echo = str(OVERHEAD / "mosec_echo.py")
    sized, own = OVERHEAD / "packages" / "length_batch", HERE / "packages"
    batch, single = OVERHEAD / "packages" / "echo_batch", OVERHEAD / "packages" / "echo_single"
    ten = Scenario("ten", "a number", b"1", "application/json", b"?")
    half = (str(HERE / "mosec_half_millisecond.py"),)
    return [
        Case("batch", "64 floats, batches", batch, floats, mosec=(echo, "--orjson", "--batch", "32")),
        Case("single", "64 floats, one by one", single, floats, mosec=(echo, "--orjson", "--batch", "1")),
        Case("half", "0.5 ms of work each", own / "half_millisecond", floats, workers=10, mosec=half),
        Case("51kB", "51 kB in, its length out", sized, length(51_000), connections=64,
             mosec=(echo, "--length", "--batch", "32")),
        Case("600kB", "600 kB in, its length out", sized, length(600_000), connections=64,
             mosec=(echo, "--length", "--batch", "32")),
        Case("close", "a connection per request", batch, floats, connections=64, close=True,
             mosec=(echo, "--orjson", "--batch", "32")),
        Case("spread", "10 ms of sleep each, load on all fronts", own / "ten_milliseconds", ten, 12, 39),
        Case("skew", "the same, all load on one front", own / "ten_milliseconds", ten, 12, 39, skewed=True),
    ]  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """A ratio of two rates that should be reached on 16 cores."""

    case: str
    subject: str
    reference: str
    least: float
    reference_case: str = ""


BARS = (
    *(Bar(case, "2 fronts", "1 front", 1.8) for case in ("batch", "single")),
    *(Bar(case, "4 fronts", "1 front", 3.2) for case in ("batch", "single")),
    Bar("batch", "4 fronts", "mosec", 0.95),
    Bar("single", "4 fronts", "mosec", 1.2),
    Bar("half", "1 front", "mosec", 0.97),
    Bar("51kB", "4 fronts", "1 front", 2.2),
    Bar("close", "4 fronts", "1 front", 3.5),
    Bar("skew", "4 fronts", "4 fronts", 0.9, reference_case="spread"),
    *(Bar(case, "1 front", "before", 0.97) for case in ("batch", "single", "half", "51kB", "close")),
)
