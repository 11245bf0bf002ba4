"""What a script on a node finds: the settings of its package, its share of the node, and nothing of the front's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import Server, serving, wait_until

pytestmark = pytest.mark.timeout(400)
SCRIPT = """
import os

KEPT = []

def predict(request):
    if "fail" in request:
        raise ValueError("as it was told")
    if "fill" in request:
        KEPT.append(b"x" * request["fill"])
    return dict(os.environ) if "fill" not in request else os.getpid()
"""
SETTINGS = """
max_json_depth = 3
worker_memory = "120m"
rerun = false

[ray]
address = "{address}"
python = "{python}"
worker_resources = {{ cpu = 2, gpu = 1 }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@pytest.fixture(scope="module")
def server(cluster: RayCluster, folder: Path) -> Iterator[Server]:
    """All that concerns Ray is said by the package's own file."""
    (folder / "model.py").write_text(SCRIPT)
    (folder / "panglot.toml").write_text(SETTINGS.format(address=cluster.address, python=cluster.python))
    with cluster.entered(), serving(folder, env={"OF_THE_FRONT": "1"}, ready=False) as running:
        yield running.wait_ready(120)


def test_the_environment_is_that_of_the_node_and_of_the_placement(inside: RayCluster, server: Server) -> None:
    environment = server.predict({}).json()
    assert environment["TEST_RAY_NODE"] == inside.node(3), "the one with a GPU"
    assert "OF_THE_FRONT" not in environment
    assert not [name for name in environment if name.startswith("RAY_")]
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    assert {environment[name] for name in threads} == {"2"}, "as many as the placement has cores"
    assert environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert environment["PANGLOT_DEVICE"] == "cuda:0"


def test_limits_of_the_package_hold_on_nodes(inside: RayCluster, server: Server) -> None:
    assert server.predict(content=b"[[[[]]]]", headers={"content-type": "application/json"}).status_code == 400


def test_a_worker_that_holds_too_much_memory_is_replaced(inside: RayCluster, server: Server) -> None:
    """By a successor at its placement, once that is ready."""
    first = server.predict({"fill": 150_000_000}).json()
    server.wait_log(r"is being replaced: it holds \d+ MiB of memory", 60)
    wait_until(lambda: server.predict({"fill": 1}).json() != first, 60, lambda: server.log)
    assert server.log.count("is ours: agent") == 1


def test_tracebacks_name_the_files_of_this_machine(inside: RayCluster, server: Server, folder: Path) -> None:
    assert server.predict({"fail": 1}).status_code == 500
    server.wait_log(rf'File "{folder}/model.py", line \d+, in predict')
