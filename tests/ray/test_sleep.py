"""A model that sleeps gives its placements back to the cluster, and gets others when it wakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ray_cluster import RayCluster
from support.server import PACKAGES, Server, panglot, serving, wait_until


@pytest.mark.timeout(400)
def test_placements_are_given_back_while_a_model_sleeps(inside: RayCluster, tmp_path: Path) -> None:
    flags = ("--workers", "2", "--sleep-after", "1s", "--state-folder", str(tmp_path))
    with serving("on_nodes", *inside.flags, *flags, ready=False) as server:
        server.wait_ready(120)
        wait_until(lambda: server.metric("panglot_model_state", state="asleep") == 1, 60, lambda: server.log)
        wait_until(lambda: placements(server) == 0, 60, lambda: server.log)
        # Each answer keeps it awake for another second, until it has the later of its placements.
        wait_until(lambda: answers(server) and server.metric("panglot_workers", state="ready") == 2, 60,
                   lambda: server.log)  # fmt: skip


def answers(server: Server) -> bool:
    return bool(server.predict({"id": 1}).json()["id"] == 1)


def placements(server: Server) -> float:
    return sum(server.metric("panglot_placements", state=state) for state in ("free", "used", "waiting"))


def test_memory_budgets_are_refused_on_a_cluster() -> None:
    done = panglot("serve", str(PACKAGES / "on_nodes"), "--ray", "auto", "--memory-budget", "1GiB", "--port", "0")
    assert done.returncode == 3
    assert "memory budgets count the memory of this machine" in done.stderr
