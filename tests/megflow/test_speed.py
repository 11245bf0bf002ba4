"""What graphs cost, as ratios of one interleaved run; the figures themselves are in benchmarks/graph."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.server import ROOT

pytestmark = pytest.mark.quiet

BENCHMARKS = ROOT / "benchmarks" / "graph"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The modules of the benchmark by name."""
    sys.path.insert(0, str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        module = importlib.import_module(name)
        assert Path(str(module.__file__)).parent == BENCHMARKS
        return module

    yield load
    sys.path.remove(str(BENCHMARKS))


def test_a_chain_of_ten_nodes_beside_bare_queues(bench: Any) -> None:
    assert bench("chain").compare(messages=3000, rounds=3)["ratio"] > 0.5


def test_nodes_that_wait_overlap(bench: Any) -> None:
    overlap = bench("overlap")
    # One after the other they would reach a third of the ceiling.
    assert overlap.rate(100) > 0.6 * overlap.bare_rate(100)


def test_memory_is_flat(bench: Any) -> None:
    _, grown = bench("memory").growth(20_000)
    assert grown < 8_000_000


def test_a_picture_over_http_beside_the_plain_dialect(bench: Any) -> None:
    assert bench("over_http").compare(rounds=3, requests=200)["ratio"] < 2
