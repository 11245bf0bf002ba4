"""Three interpreters: the front's, that of the cluster, and that of the script."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import interpreters
from support.environments import python_with
from support.ray_cluster import VERSION, RayCluster
from support.server import panglot, serving
from support.traffic import SOAK

VERSIONS = interpreters.found()
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not SOAK, reason="it makes an environment with another Ray, and a second cluster: make soak"),
    pytest.mark.skipif(not {"3.8", "3.12"} <= VERSIONS.keys(), reason="no CPython 3.8 or 3.12 here"),
]
SCRIPT = """
import sys

def preprocess(request): return {"n": request, "bytes": b"x" * 50_000, "seen": sys.version_info[:2]}
def predict(value): return [value["n"], len(value["bytes"]), list(value["seen"]), list(sys.version_info[:2])]
"""


@pytest.fixture(scope="module")
def foreign() -> Iterator[RayCluster]:
    """A cluster of another CPython than ours; tests are in its network."""
    python = python_with(f"ray-{VERSION}-3.12", f"ray[client]=={VERSION}", base=VERSIONS["3.12"])
    running = RayCluster(python=python)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        try:
            with running.network.entered():
                yield running
        finally:
            running.close()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(SCRIPT)
    return tmp_path


def test_a_script_of_an_old_python_on_a_cluster_of_a_new_one(foreign: RayCluster, package: Path) -> None:
    assert sys.version_info[:2] != (3, 12)
    for flags, version in ((("--python", VERSIONS["3.8"]), [3, 8]), ((), [3, 12])):
        with serving(package, *foreign.flags, *flags, "--pools", "preprocess=1,inference=1", ready=False) as server:
            server.wait_ready(300)
            assert [server.predict(number).json() for number in range(5)] == [
                [number, 50_000, version, version] for number in range(5)
            ]


def test_a_front_whose_ray_is_of_another_python_is_told_so(foreign: RayCluster, package: Path) -> None:
    ours = python_with(f"ray-{VERSION}", f"ray[client]=={VERSION}")
    done = panglot("serve", str(package), "--port", "0", "--ray", foreign.address, "--ray-python", ours, seconds=300)
    assert done.returncode == 3
    assert "3.12" in done.stderr
    assert "--ray-python of an interpreter with the cluster's versions of Python and Ray" in done.stderr
    assert os.environ["RAY_AUTH_TOKEN"] not in done.stderr
