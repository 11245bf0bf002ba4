"""Several servers on one cluster, which share nothing; and one server with several fronts, which has one driver."""

from __future__ import annotations

import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from support.fronts import client_of, pid_of
from support.on_nodes import agents, all_answered, on_nodes, ready, workers
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


@pytest.mark.timeout(400)
def test_a_server_with_two_fronts_has_one_driver(inside: RayCluster) -> None:
    """The second front has no workers, and passes every call on; its death costs nobody else an answer."""
    with on_nodes(inside, "--fronts", "2", "--worker-resources", "cpu=0.5", workers=2) as server:
        assert len(server.fronts()) == 2
        for front in (0, 1):
            answers = [client_of(server, front).post("/predict", json={"do": "where"}).json() for _ in range(4)]
            assert {answer["pid"] for answer in answers} <= set(workers(inside)), "a worker on a node answers"
        calm = client_of(server, 0)
        psutil.Process(pid_of(server, 1)).kill()
        assert calm.post("/predict", json={"do": "where"}).status_code == 200
        wait_until(lambda: len(server.fronts()) == 2 and ready(server) == 2, 60)
        assert client_of(server, 1).post("/predict", json={"do": "where"}).status_code == 200
