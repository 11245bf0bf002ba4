"""One cluster for all tests of this folder, and the network it is in for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.ray_cluster import RayCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[RayCluster]:
    """A head and two nodes with room for two workers each."""
    running = RayCluster()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        try:
            yield running
        finally:
            running.close()


@pytest.fixture
def inside(cluster: RayCluster) -> Iterator[RayCluster]:
    """The cluster, with the test in its network."""
    with cluster.entered():
        yield cluster
