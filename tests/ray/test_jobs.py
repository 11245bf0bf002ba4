"""Jobs run on the nodes of a cluster, and one that is cancelled stops there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import serving, wait_until

pytestmark = pytest.mark.timeout(400)
ASYNC = {"prefer": "respond-async"}


def test_a_job_runs_on_a_node_and_another_is_interrupted_there(inside: RayCluster, tmp_path: Path) -> None:
    flags = ("--workers", "1", "--jobs", str(tmp_path / "jobs"), "--on-leave", "interrupt")
    with serving("on_nodes", *inside.flags, *flags, ready=False) as server:
        server.wait_ready(120)
        job = server.client.post("/predict", json={"do": "where"}, headers=ASYNC).json()
        done = server.client.get(f"/jobs/{job['id']}", headers={"prefer": "wait=60"}, timeout=90).json()
        assert done["state"] == "done", done
        where = server.client.get(done["result"]).json()
        assert where["node"] in (inside.node(2), inside.node(3))
        long = server.client.post("/predict", json={"sleep": 600}, headers=ASYNC).json()["id"]
        wait_until(lambda: server.client.get(f"/jobs/{long}").json()["state"] == "running", 60)
        assert server.client.delete(f"/jobs/{long}").json()["state"] == "cancelled"
        # The only worker is free again long before the script would have been, and is the same process.
        assert server.predict({"do": "where"}, timeout=90).json()["pid"] == where["pid"]
