"""Several servers on one cluster: they share nothing, and the death of one is none of the other's business."""

from __future__ import annotations

import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.on_nodes import agents, all_answered, ready, workers
from support.ray_cluster import RayCluster
from support.server import PACKAGES, serving, wait_until

FLAGS = ("--workers", "2", "--worker-resources", "cpu=0.5")


@pytest.mark.timeout(400)
def test_two_fronts_side_by_side(inside: RayCluster, tmp_path: Path) -> None:
    """Both send the same package to the same nodes at the same time; one is killed under load."""
    package = tmp_path / "on_nodes"
    shutil.copytree(PACKAGES / "on_nodes", package)
    (package / "weights.bin").write_bytes(tmp_path.name.encode() * 200_000)
    strangers = set(agents(inside)) | set(workers(inside))
    with ExitStack() as stack:
        both = [stack.enter_context(serving(package, *inside.flags, *FLAGS, ready=False)) for _ in range(2)]
        for server in both:
            server.wait_ready(120)
            wait_until(lambda server=server: ready(server) == 2, 120, lambda server=server: server.log)
        stays, goes = both
        where = [server.predict({"do": "where"}).json() for server in both]
        assert where[0]["path"] == where[1]["path"], "the package is kept once"
        assert where[0]["pid"] != where[1]["pid"]
        pids = {worker["pid"] for worker in goes.client.get("/status.json").json()["workers"]}
        assert not pids & {worker["pid"] for worker in stays.client.get("/status.json").json()["workers"]}
        with all_answered(stays):
            goes.process.send_signal(signal.SIGKILL)
            goes.process.wait(20)
            wait_until(lambda: not pids & set(workers(inside)))
        assert stays.metric("panglot_worker_restarts_total") == 0
        assert len((set(agents(inside)) | set(workers(inside))) - strangers) == 4
