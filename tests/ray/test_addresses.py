"""How a cluster is reached: by Ray's client, by a table of panglot.toml, through the ports that a firewall allows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.environments import python_with
from support.on_nodes import LONG
from support.ray_cluster import RayCluster
from support.server import PACKAGES, Server, panglot, serving, wait_until
from support.traffic import SOAK, ask_all

pytestmark = pytest.mark.timeout(400)
FIRST, LAST = 31000, 31001


def test_by_rays_client_with_a_table_and_ports_of_a_firewall(inside: RayCluster, tmp_path: Path) -> None:
    """`ray://` from a machine that is no node; everything else is in the table [ray] of the package's panglot.toml.

    Each node has room for two workers, and a port for each of them.
    """
    package = tmp_path / "on_nodes"
    shutil.copytree(PACKAGES / "on_nodes", package)
    (package / "panglot.toml").write_text(
        f'workers = 4\n[ray]\naddress = "ray://{inside.network.address(1)}:10001"\npython = "{inside.python}"\n'
        f'worker_resources = {{ cpu = 1 }}\nagent_ports = "{FIRST}-{LAST}"\nfiles = "shared"\n'
    )
    with serving(package, ready=False) as server:
        server.wait_ready(LONG)
        wait_until(lambda: server.metric("panglot_workers", state="ready") == 4, LONG, lambda: server.log)
        answers = ask_all(server, [{"id": number, "sleep": 0.01} for number in range(40)], 60)
        assert [answer.json()["id"] for answer in answers] == list(range(40))
        where = server.predict({"do": "where"}).json()
        assert where["path"] == str(package), "the package is where it is here, and was not sent"
        assert front_ports(server, inside) == {FIRST, LAST}


def front_ports(server: Server, cluster: RayCluster) -> set[int]:
    """The ports of nodes that the server is connected to."""
    nodes = {cluster.network.address(2), cluster.network.address(3)}
    return {
        connection.raddr.port
        for process in server.own()
        for connection in process.net_connections("tcp")
        if connection.raddr and connection.raddr.ip in nodes
    }


def test_too_few_ports_are_told(inside: RayCluster) -> None:
    """One port for each node, and two workers for each."""
    with serving(
        "on_nodes", *inside.flags, "--workers", "4", "--agent-ports", f"{FIRST}-{FIRST}", ready=False
    ) as server:
        server.wait_ready(LONG)
        server.wait_log(f"no port of {FIRST}-{FIRST} is free.*--agent-ports", LONG)
        assert server.predict({"id": 1}).json()["id"] == 1


@pytest.fixture
def another_ray() -> str:
    """An interpreter with another Ray. A test wants it before `inside`, where nothing can be installed."""
    return python_with("ray-2.55.1", "ray[client]==2.55.1")


@pytest.mark.skipif(not SOAK, reason="installs another Ray")
@pytest.mark.parametrize("by_client", [False, True], ids=["head", "client"])
def test_another_version_of_ray_is_told_in_one_line(another_ray: str, inside: RayCluster, by_client: bool) -> None:
    address = f"ray://{inside.network.address(1)}:10001" if by_client else inside.address
    done = panglot("serve", str(PACKAGES / "on_nodes"), "--port", "0", "--ray", address, "--ray-python", another_ray,
                   seconds=300)  # fmt: skip
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"error: --ray {address}: ")
    assert "(fix: --ray-python of an interpreter with the cluster's versions of Python and Ray" in last


def test_a_placement_that_no_node_can_give_is_told(inside: RayCluster) -> None:
    """Of what there is too much, and of what nobody has."""
    with serving("on_nodes", *inside.flags, "--worker-resources", "cpu=1000,unheard_of=1", ready=False) as server:
        line = server.wait_log("no node has cpu=1000,unheard_of=1 free; waiting. The cluster has .*", LONG)
        assert "CPU 2" in line[0]
        assert server.client.get("/v2/health/ready").status_code == 503
    assert server.process.returncode == 0
