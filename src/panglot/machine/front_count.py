"""How many fronts suit a machine and its workers: `--fronts auto`."""

from __future__ import annotations

from panglot.machine.cpus import usable_cpus

MOST = 8
WORKERS_EACH = 4
"""Workers that a front has at least, where the number is chosen: one front feeds ten workers of half a millisecond."""
CORES_EACH = 8
"""Cores for each front: scripts want the others."""


def automatic(workers: int, cores: float | None = None) -> int:
    """How many fronts a server with so many workers has by `--fronts auto`."""
    if cores is None:
        cores = usable_cpus()
    return max(1, min(MOST, workers // WORKERS_EACH, int(cores // CORES_EACH)))


def advised(fronts: int, cores: float | None = None) -> int:
    """How many fronts to try where each of so many is busy all the time; 0 where the cores are too few for more."""
    if cores is None:
        cores = usable_cpus()
    return 2 * fronts if cores >= 4 * fronts else 0
