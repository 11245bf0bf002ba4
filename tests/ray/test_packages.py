"""Packages on their way to nodes: large ones, and those that are not used any more."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from support.on_nodes import on_nodes
from support.ray_cluster import RayCluster
from support.traffic import SOAK

pytestmark = pytest.mark.timeout(900)
SIZE = 600 << 20
"""More than Ray itself would send."""


@pytest.mark.skipif(not SOAK, reason="sends more than half a gigabyte")
def test_a_large_package_is_sent_once_to_a_node(inside: RayCluster, tmp_path: Path) -> None:
    """Two workers on each of two nodes, which here have one folder for what they keep."""
    (tmp_path / "model.py").write_text(
        "import hashlib, os\n\n\ndef predict(value):\n"
        "    with open('weights.bin', 'rb') as file:\n"
        "        return [hashlib.sha256(file.read()).hexdigest(), os.stat('weights.bin').st_ino, os.getcwd()]\n"
    )
    with (tmp_path / "weights.bin").open("wb") as weights:
        for number in range(SIZE >> 20):
            weights.write(os.urandom(1 << 10) * (1 << 10) if number % 2 else bytes(1 << 20))
    with on_nodes(inside, "--ray-tls", path=tmp_path, workers=4) as server:
        answers = {tuple(server.predict(number).json()) for number in range(8)}
    with (tmp_path / "weights.bin").open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    assert len(answers) == 1, "one file for all"
    ((theirs, _, path),) = answers
    assert theirs == digest
    assert Path(path).is_relative_to(Path(inside.folder, f"panglot-node-{os.getuid()}"))
