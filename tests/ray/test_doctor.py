"""`panglot doctor --ray` asks the cluster for a placement before anything is served there."""

from __future__ import annotations

import json

import pytest

from support.ray_cluster import RayCluster
from support.server import PACKAGES, panglot

pytestmark = pytest.mark.timeout(400)


def examined(*flags: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    done = panglot("doctor", "--json", *flags, seconds=180)
    findings: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        findings.setdefault(f"{finding['section']} {finding['name']}", []).append(finding)
    return done.returncode, findings


def test_a_cluster_that_is_well(inside: RayCluster) -> None:
    code, findings = examined(str(PACKAGES / "on_nodes"), *inside.flags)
    assert code == 0, findings
    assert "Ray 2.60.0" in findings["cluster connected"][0]["value"]
    assert "3 node(s)" in findings["cluster connected"][0]["value"]
    assert "cpu=1 on node 10.9." in findings["cluster placement"][0]["value"] or inside.network.holder is None
    assert "cluster token" not in findings


def test_a_cluster_that_is_not_there(inside: RayCluster) -> None:
    code, findings = examined("--ray", f"{inside.network.address(1)}:6398", "--ray-python", inside.python)
    assert code == 3
    assert findings["cluster connected"][0]["state"] == "problem"
    assert "nothing answers there" in findings["cluster connected"][0]["value"]
