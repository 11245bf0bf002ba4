"""The driver of Ray beside the front, without a cluster: its interpreter is a script that speaks as a driver does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from panglot.engine.ray import cluster
from panglot.errors import StartError
from panglot.settings import Settings

DRIVER = """#!/bin/sh
echo x >> {folder}/started
if [ $(wc -l < {folder}/started) -le {silent} ]; then exec sleep 60; fi
echo '{{"is": "connected", "ray": "2.60.0", "token": true, "nodes": []}}'
exec sleep 60
"""


def connect(folder: Path, silent: int) -> cluster.Cluster:
    """Connect where the first drivers hang, as Ray's client does when its server fails to start what it needs."""
    python = folder / "python"
    python.write_text(DRIVER.format(folder=folder, silent=silent))
    python.chmod(0o755)

    async def main() -> cluster.Cluster:
        found = cluster.Cluster(Settings(ray="ray://10.0.0.1:10001", ray_python=str(python)))
        try:
            await found.start()
        finally:
            await found.close()
            # The loop hears once more that the pipes of the last driver have ended.
            await asyncio.sleep(0.1)
        return found

    return asyncio.run(main())


def test_a_driver_that_hangs_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", (0.5, 0.5, 10.0))
    assert connect(tmp_path, silent=2).version == "2.60.0"
    assert len((tmp_path / "started").read_text().split()) == 3


def test_a_cluster_that_never_answers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", (0.5, 0.5, 0.5))
    with pytest.raises(StartError, match=r"--ray ray://10.0.0.1:10001: the cluster did not answer within 1.5 s"):
        connect(tmp_path, silent=10)
