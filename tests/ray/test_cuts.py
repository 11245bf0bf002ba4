"""Networks that are cut: packets are lost in both ways, and nobody is told."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.on_nodes import LONG, all_answered, keepers, on_nodes, ready, workers
from support.ray_cluster import RayCluster
from support.server import Server, wait_until

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def cuttable(inside: RayCluster) -> Iterator[RayCluster]:
    if inside.network.holder is None:
        pytest.skip("this machine allows no network namespaces, so that no network can be cut")
    yield inside
    for number in (2, 3):
        inside.network.mend(number)


def lost(server: Server) -> int:
    return int(server.metric("panglot_worker_restarts_total", reason="lost"))


def test_a_node_that_is_cut_off_costs_nothing_and_comes_back(cuttable: RayCluster) -> None:
    """Its workers end by themselves; meanwhile the other node answers."""
    with on_nodes(cuttable, "--timeout", "60") as server:
        node = cuttable.network.address(3)
        there = int(server.metric("panglot_node_workers", node=node))
        mark, begun = len(server.lines), time.monotonic()
        with all_answered(server) as busy:
            cuttable.network.cut(3)
            wait_until(lambda: lost(server) == there, LONG, lambda: server.log)
            print(f"noticed after {time.monotonic() - begun:.1f} s")
            wait_until(lambda: not workers(cuttable, 3) and not keepers(cuttable, 3), LONG)
            print(f"its workers had ended after {time.monotonic() - begun:.1f} s")
            answered = busy.statuses[200]
            wait_until(lambda: busy.statuses[200] > answered + 50, LONG)
            assert server.ready() == 200
            assert server.metric("panglot_places", state="used") + server.metric("panglot_places", state="waiting") == 3
            cuttable.network.mend(3)
            wait_until(lambda: ready(server) == 3, LONG, lambda: server.log)
            print(f"all were back after {time.monotonic() - begun:.1f} s")
        server.wait_log(rf"place \d+ on node {node} was lost: ", after=mark)
