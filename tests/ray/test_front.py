"""A front whose network is cut: the nodes end its workers, and it waits until it has them back."""

from __future__ import annotations

import time

import pytest

from support.on_nodes import LONG, agents, on_nodes, ready, workers
from support.ray_cluster import RayCluster
from support.server import wait_until
from support.traffic import SOAK, send

APART = 4
"""The number of the machine that only the front is on."""


@pytest.mark.timeout(400)
@pytest.mark.skipif(not SOAK, reason="a network is cut elsewhere too: make soak")
def test_cut_off_from_all_nodes_it_waits_and_they_end_its_workers(cluster: RayCluster) -> None:
    if cluster.network.holder is None:
        pytest.skip("this machine allows no network namespaces, so that no network can be cut")
    with cluster.network.entered(APART), on_nodes(cluster, "--timeout", "5s", workers=2) as server:
        mark, begun = len(server.lines), time.monotonic()
        cluster.network.cut(APART)
        wait_until(lambda: not workers(cluster) and not agents(cluster), LONG)
        print(f"its workers had ended after {time.monotonic() - begun:.1f} s")
        wait_until(lambda: server.ready() == 503, LONG)
        answer = send(server, {"id": 1}).result(LONG)
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "no_place", "5")
        assert server.metric("panglot_placements", state="used") == 0
        assert server.client.get("/v2/health/live").status_code == 200
        server.wait_log(r"placement \d+ on node \S+ was lost: ", after=mark)
        cluster.network.mend(APART)
        wait_until(lambda: ready(server) == 2, LONG, lambda: server.log)
        print(f"all were back after {time.monotonic() - begun:.1f} s")
        assert server.predict({"id": 2}).json()["id"] == 2
