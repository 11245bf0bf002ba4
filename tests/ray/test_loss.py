"""Loss of a worker, an agent, a node, the driver or the front, under load: nothing that was accepted is lost."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.on_nodes import agents, all_answered, drivers, on_nodes, ready, workers
from support.ray_cluster import RayCluster
from support.server import Server, lives, serving, wait_until
from support.traffic import send

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def shared(cluster: RayCluster) -> Iterator[Server]:
    with cluster.entered(), on_nodes(cluster) as server:
        yield server


def test_a_killed_worker_comes_back_at_its_placement(inside: RayCluster, shared: Server) -> None:
    placements = len(re.findall(r"is ours: agent", shared.log))
    with all_answered(shared):
        for pid in workers(inside)[:2]:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: shared.metric("panglot_worker_restarts_total", reason="died") >= 2, 60)
        wait_until(lambda: ready(shared) == 3, 60)
    assert len(re.findall(r"is ours: agent", shared.log)) == placements


def test_the_guilty_request_alone_pays(inside: RayCluster, shared: Server) -> None:
    with all_answered(shared):
        assert send(shared, {"do": "kill", "signal": "SIGKILL"}).result(60).status == 500
        wait_until(lambda: ready(shared) == 3, 60)


def test_a_killed_agent_takes_its_worker_and_nothing_else(inside: RayCluster, shared: Server) -> None:
    before = shared.metric("panglot_worker_restarts_total", reason="lost")
    with all_answered(shared):
        os.kill(agents(inside)[0], signal.SIGKILL)
        wait_until(lambda: shared.metric("panglot_worker_restarts_total", reason="lost") == before + 1, 60)
        wait_until(lambda: ready(shared) == 3, 120, lambda: shared.log)
    wait_until(lambda: len(workers(inside)) == 3)


def test_the_driver_is_started_again_and_workers_go_on(inside: RayCluster, shared: Server) -> None:
    before = len(shared.lines)
    pids = workers(inside)
    with all_answered(shared):
        drivers(shared)[0].kill()
        shared.wait_log("the driver of Ray ended", 30, after=before)
        shared.wait_log("connected to Ray", 60, after=before)
    assert sorted(workers(inside)) == sorted(pids)
    with all_answered(shared):
        os.kill(agents(inside)[0], signal.SIGKILL)
        wait_until(lambda: ready(shared) == 2, 60)
        wait_until(lambda: ready(shared) == 3, 120, lambda: shared.log)


def test_a_killed_node_costs_nothing_and_may_come_back(inside: RayCluster, shared: Server) -> None:
    """Its calls run on the other node; workers for which there is no room wait until it is back."""
    before = shared.metric("panglot_worker_restarts_total", reason="lost")
    with all_answered(shared) as busy:
        inside.kill(3)
        wait_until(lambda: shared.metric("panglot_worker_restarts_total", reason="lost") > before, 60)
        answered = busy.statuses[200]
        wait_until(lambda: busy.statuses[200] > answered + 50, 60)
        assert 1 <= ready(shared) <= 2
        inside.start(3, 2)
        wait_until(lambda: ready(shared) == 3, 120, lambda: shared.log)


def test_a_front_that_dies_takes_everything_with_it(inside: RayCluster) -> None:
    before = set(agents(inside)) | set(workers(inside))
    with serving("on_nodes", *inside.flags, "--workers", "1", ready=False) as server:
        server.wait_ready(120)
        driver = drivers(server)[0]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(20)
        wait_until(lambda: not lives(driver))
        wait_until(lambda: not (set(agents(inside)) | set(workers(inside))) - before, 20)


def test_placements_and_nodes_are_counted(inside: RayCluster, shared: Server) -> None:
    assert shared.metric("panglot_placements", state="used") == 3
    assert shared.metric("panglot_placements", state="waiting") == 0
    assert sum(shared.metric("panglot_node_workers", node=inside.network.address(number)) for number in (2, 3)) == 3
    nodes = {worker["node"] for worker in shared.client.get("/status.json").json()["workers"]}
    assert nodes == {inside.network.address(2), inside.network.address(3)}


def test_an_agent_that_dies_at_birth_costs_no_start(inside: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(value):\n    return value\n")
    known = set(agents(inside))
    with serving(tmp_path, *inside.flags, ready=False) as server:
        wait_until(lambda: set(agents(inside)) - known, 60, lambda: server.log)
        for pid in set(agents(inside)) - known:
            os.kill(pid, signal.SIGKILL)
        server.wait_ready(120)
        assert send(server, 5).result(60).json() == 5


def test_hung_calls_are_ended_with_their_stacks(inside: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import time\n\n\ndef predict(value):\n    time.sleep(value)\n    return value\n"
    )
    flags = ("--run-timeout", "0.5s", "--kill-grace", "0.2s", "--no-rerun")
    with serving(tmp_path, *inside.flags, *flags, ready=False) as server:
        server.wait_ready(120)
        answer = send(server, 600).result(60)
        assert answer.status == 504
        server.wait_log(r'model.py", line 5 in predict', 30)
        wait_until(lambda: server.predict(0).status_code == 200, 60)
