"""Servers that tests of faults share: whatever a test does to one, it must be well afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pool import Lend, Pool

SCRIPTS = ("single", "batch", "overlapping", "stream")
FAILING = {
    **{f"fault_script/{name}.py": {"id": 0, "op": "fail"} for name in SCRIPTS},
    "fault_results": {"id": 0, "results": "none"},
}


@pytest.fixture(scope="session")
def lend() -> Iterator[Lend]:
    """As `serving()`, for packages in FAILING: the server may have been that of another test, and looks new."""
    pool = Pool(FAILING)
    yield pool.lend
    pool.close()
