"""`--workers MIN:MAX` on a cluster: more placements while requests wait, and fewer afterwards."""

from __future__ import annotations

import re

import pytest

from support.load import Busy
from support.ray_cluster import RayCluster
from support.server import serving, wait_until

SOON = ("--scale-wait", "200ms", "--scale-idle", "2s")


@pytest.mark.timeout(400)
def test_grows_over_the_nodes_and_shrinks(inside: RayCluster) -> None:
    with serving("on_nodes", *inside.flags, "--workers", "1:3", *SOON, ready=False) as server:
        server.wait_ready(120)
        assert server.metric("panglot_workers", state="ready") == 1
        with Busy(server, clients=8, rate=2000, sleep=0.2) as busy:
            wait_until(lambda: server.metric("panglot_workers", state="ready") == 3, 120, lambda: server.log)
        assert (busy.lost, busy.wrong, set(busy.statuses)) == ([], [], {200})
        server.wait_count("ready after", 3)
        assert len(set(re.findall(r"ready after .* s \(node (\S+), ", server.log))) == 2, "two nodes with room for two"
        wait_until(lambda: server.metric("panglot_workers_wanted") == 1, 60, lambda: server.log)
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 1, 30)
        assert server.predict({"id": 1}).json()["id"] == 1
