"""The driver of Ray beside the front, without a cluster: its interpreter is a script that speaks as a driver does."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
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
WITHOUT_RAY = """#!/bin/sh
read first
echo '{"is": "failed", "kind": "ModuleNotFoundError", "why": "No module named ray"}'
"""


@pytest.fixture
def head() -> Iterator[str]:
    """The address of something that listens as a cluster's head does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"ray://127.0.0.1:{listener.getsockname()[1]}"


def interpreter(folder: Path, text: str) -> str:
    python = folder / "python"
    python.write_text(text)
    python.chmod(0o755)
    return str(python)


def connect(address: str, python: str, busy: float = 0.0) -> cluster.Cluster:
    """Connect by such an interpreter. For `busy` seconds after its start the loop has something else to do."""

    async def main() -> cluster.Cluster:
        found = cluster.Cluster(Settings(ray=address, ray_python=python))
        try:
            starting = asyncio.create_task(found.start())
            while not found.pid:
                await asyncio.sleep(0)
            time.sleep(busy)
            await starting
        finally:
            async with asyncio.timeout(20):
                await found.close()
            # The loop hears once more that the pipes of the last driver have ended.
            await asyncio.sleep(0.1)
        return found

    return asyncio.run(main())


def hanging(folder: Path, silent: int) -> str:
    """The first drivers hang, as Ray's client does when its server fails to start what it needs."""
    return interpreter(folder, DRIVER.format(folder=folder, silent=silent))


def test_a_driver_that_hangs_is_started_again(head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", (2.0, 2.0, 30.0))
    # Time enough for the silent ones to be counted before they are given up.
    assert connect(head, hanging(tmp_path, silent=2)).version == "2.60.0"
    assert len((tmp_path / "started").read_text().split()) == 3


def test_a_cluster_that_never_answers_is_an_error(head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", (0.5, 0.5, 0.5))
    with pytest.raises(StartError, match=rf"--ray {re.escape(head)}: the cluster did not answer within 1.5 s"):
        connect(head, hanging(tmp_path, silent=10))


def test_a_driver_that_fails_and_ends_at_once_ends_the_start(
    head: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it said and its end are read together; the driver is not tried again while the server ends."""
    with pytest.raises(StartError, match="has no Ray"):
        connect(head, interpreter(tmp_path, WITHOUT_RAY), busy=0.5)
    assert "tried again" not in caplog.text
