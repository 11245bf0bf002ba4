"""`panglot doctor --ray` asks the cluster for a placement before anything is served there."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import PACKAGES, panglot

pytestmark = pytest.mark.timeout(400)


def examined(*flags: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    done = panglot("doctor", "--json", *flags, seconds=300)
    findings: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        findings.setdefault(f"{finding['section']} {finding['name']}", []).append(finding)
    return done.returncode, findings


def test_a_cluster_that_is_well(inside: RayCluster) -> None:
    code, findings = examined(str(PACKAGES / "on_nodes"), *inside.flags)
    assert code == 0, findings
    assert "Ray 2.60.0" in findings["cluster connected"][0]["value"]
    assert "3 nodes" in findings["cluster connected"][0]["value"]
    assert "cpu=1 on node 10.9." in findings["cluster placement"][0]["value"] or inside.network.holder is None
    assert "cluster token" not in findings


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "[::1]:{}"])
def test_a_cluster_that_is_not_there(form: str, tmp_path: Path) -> None:
    """The port is looked at before Ray is started, which would try for minutes."""
    python, started = tmp_path / "python", tmp_path / "started"
    python.write_text(f"#!/bin/sh\ntouch {started}\n")
    python.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = form.format(taken.getsockname()[1])
    code, findings = examined("--ray", nobody, "--ray-python", str(python))
    assert code == 3
    connected = findings["cluster connected"][0]
    assert connected["state"] == "problem"
    assert connected["value"].startswith(f"--ray {nobody}: nothing answers there (")
    assert "\n" not in connected["value"]
    assert "is it the address of a head, HOST:6379" in connected["fix"]
    assert not started.exists()


def test_a_name_that_leads_nowhere() -> None:
    code, findings = examined("--ray", "nowhere.invalid:6379")
    assert code == 3
    assert "--ray nowhere.invalid:6379: nothing answers there (" in findings["cluster connected"][0]["value"]
