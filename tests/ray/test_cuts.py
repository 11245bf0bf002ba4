"""A node whose network is cut, with packets lost in both ways and nobody told; and Ray's head, gone for a while."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from support.on_nodes import LONG, agents, all_answered, on_nodes, ready, workers
from support.ray_cluster import RayCluster, command_of
from support.server import Server, serving, wait_until
from support.traffic import SOAK

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def shared(cluster: RayCluster) -> Iterator[Server]:
    with cluster.entered(), on_nodes(cluster, "--timeout", "60") as server:
        yield server


@pytest.fixture
def cuttable(inside: RayCluster) -> Iterator[RayCluster]:
    if inside.network.holder is None:
        pytest.skip("this machine allows no network namespaces, so that no network can be cut")
    yield inside
    for number in (2, 3):
        inside.network.mend(number)


def left(cluster: RayCluster) -> str:
    """What still runs on the node that is cut off."""
    return "".join(f"{pid} {' '.join(command_of(pid))}\n" for pid in cluster.processes(3))


def lost(server: Server) -> int:
    return int(server.metric("panglot_worker_restarts_total", reason="lost"))


def test_a_node_that_is_cut_off_costs_nothing_and_comes_back(cuttable: RayCluster, shared: Server) -> None:
    """Its workers end by themselves; meanwhile the other node answers."""
    node = cuttable.network.address(3)
    there = lost(shared) + int(shared.metric("panglot_node_workers", node=node))
    mark, begun = len(shared.lines), time.monotonic()
    with all_answered(shared) as busy:
        cuttable.network.cut(3)
        wait_until(lambda: lost(shared) == there, LONG, lambda: shared.log)
        print(f"noticed after {time.monotonic() - begun:.1f} s")
        wait_until(
            lambda: not workers(cuttable, 3) and not agents(cuttable, 3), LONG, lambda: left(cuttable) + shared.log
        )
        print(f"its workers had ended after {time.monotonic() - begun:.1f} s")
        answered = busy.statuses[200]
        wait_until(lambda: busy.statuses[200] > answered + 50, LONG)
        assert shared.ready() == 200
        assert (
            shared.metric("panglot_placements", state="used") + shared.metric("panglot_placements", state="waiting")
            == 3
        )
        cuttable.network.mend(3)
        wait_until(lambda: ready(shared) == 3, LONG, lambda: shared.log)
        print(f"all were back after {time.monotonic() - begun:.1f} s")
    shared.wait_log(rf"placement \d+ on node {node} was lost: ", after=mark)


@pytest.mark.skipif(not SOAK, reason="Ray's client gives up its server after half a minute: make soak")
def test_the_server_of_ray_addresses_may_go_and_come_back(inside: RayCluster) -> None:
    address = f"ray://{inside.network.address(1)}:10001"
    with serving("on_nodes", *inside.flags, "--ray", address, ready=False) as server:
        server.wait_ready(LONG)
        mark = len(server.lines)
        clients = [pid for pid in inside.processes(1) if "ray.util.client.server" in " ".join(command_of(pid))]
        clients.sort(key=lambda pid: "proxy" not in " ".join(command_of(pid)))
        with all_answered(server), inside.without(*clients):
            server.wait_log("the driver of Ray ended", LONG, after=mark)
        server.wait_log("connected to Ray", LONG, after=mark)
        os.kill(int(server.wait_log(r"agent pid (\d+)")[1]), signal.SIGKILL)
        wait_until(lambda: ready(server) == 0, LONG)
        wait_until(lambda: ready(server) == 1, LONG, lambda: server.log)


@pytest.mark.skipif(not SOAK, reason="Ray gives up a node after a minute: make soak")
def test_a_node_that_ray_has_given_up_is_used_again_once_it_is_started(cuttable: RayCluster, shared: Server) -> None:
    with all_answered(shared):
        cuttable.network.cut(3)
        wait_until(lambda: not cuttable.commands(3, "/raylet"), 2 * LONG)
        cuttable.network.mend(3)
        cuttable.start(3, 2)
        wait_until(lambda: ready(shared) == 3, LONG, lambda: shared.log)


@pytest.mark.skipif(not SOAK, reason="afterwards the head knows no clients of ray:// addresses any more: make soak")
def test_the_head_may_go_and_come_back(inside: RayCluster, shared: Server) -> None:
    pids = workers(inside)
    with all_answered(shared) as busy:
        with inside.headless():
            answered = busy.statuses[200]
            wait_until(lambda: busy.statuses[200] > answered + 200, LONG)
            os.kill(agents(inside)[0], signal.SIGKILL)
            wait_until(lambda: ready(shared) == 2, LONG, lambda: shared.log)
            assert shared.ready() == 200
        wait_until(lambda: ready(shared) == 3, LONG, lambda: shared.log)
    assert len(set(pids) & set(workers(inside))) == 2
