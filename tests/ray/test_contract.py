"""The contract suite, once more, with workers on nodes: all platforms in `make soak`, one of them always."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.desk import Way
from contract.platform import Platform
from contract.table import EVALS, PLATFORMS
from contract.test_contract import (
    desk,
    gate,
    opener,
    test_401,
    test_413,
    test_a_bad_item_among_others,
    test_a_full_queue,
    test_a_life_from_loading_to_draining,
    test_a_request_and_its_id,
    test_health,
    test_nan,
    test_the_error_body,
    test_timeout,
    test_unknown_routes,
)
from support.ray_cluster import RayCluster
from support.server import Server, serving
from support.traffic import SOAK

pytestmark = pytest.mark.timeout(400)
__all__ = [
    "desk", "gate", "opener", "test_401", "test_413", "test_a_bad_item_among_others",
    "test_a_full_queue", "test_a_life_from_loading_to_draining",
    "test_a_request_and_its_id", "test_health", "test_nan", "test_the_error_body", "test_timeout",
    "test_unknown_routes",
]  # fmt: skip


@pytest.fixture(scope="module", params=PLATFORMS if SOAK else (EVALS,), ids=lambda row: row.name)
def platform(request: pytest.FixtureRequest) -> Platform:
    return request.param


@pytest.fixture(scope="module")
def way(cluster: RayCluster) -> Iterator[Way]:
    """Servers in the network of the cluster, as all requests of this module are."""

    @contextlib.contextmanager
    def on_nodes(path: Path, *flags: str, ready: bool = True, **options: Any) -> Iterator[Server]:
        with serving(path, *cluster.flags, "--python", sys.executable, *flags, ready=False, **options) as server:
            yield server.wait_ready(120) if ready else server

    with cluster.entered():
        yield on_nodes
