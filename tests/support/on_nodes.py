"""A server with workers on the nodes of a cluster, under a load all of whose answers are checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

from support.load import Busy
from support.ray_cluster import RayCluster, command_of
from support.server import Server, serving, wait_until

LONG = 120.0
"""Seconds for what takes one or two on a machine with nothing else to do."""


@contextlib.contextmanager
def on_nodes(cluster: RayCluster, *flags: str, path: Path | str = "on_nodes", workers: int = 3) -> Iterator[Server]:
    """A server all of whose workers are ready."""
    with serving(path, *cluster.flags, "--workers", str(workers), *flags, ready=False) as server:
        server.wait_ready(LONG)
        wait_until(lambda: ready(server) == workers, LONG, lambda: server.log)
        yield server


def ready(server: Server) -> int:
    return int(server.metric("panglot_workers", state="ready"))


@contextlib.contextmanager
def all_answered(server: Server) -> Iterator[Busy]:
    """A load all of whose requests are answered with 200 and what was asked, whatever happens meanwhile."""
    with Busy(server, clients=8, rate=100, sleep=0.02) as busy:
        wait_until(lambda: busy.statuses[200] > 20, 60)
        yield busy
        before = busy.statuses[200]
        wait_until(lambda: busy.statuses[200] > before + 20, 60)
    assert set(busy.statuses) == {200}, server.log
    assert not busy.wrong
    assert not busy.lost
    print(f"{busy.statuses[200]} answers, the longest after {busy.longest:.2f} s")


def agents(cluster: RayCluster, number: int | None = None) -> list[int]:
    """The processes of our agents on a node, or on all. Ray has agents too, and a node ends with the first of these."""
    return [pid for pid in cluster.processes(number) if command_of(pid)[0].startswith("ray::PlacedAgent")]


def workers(cluster: RayCluster, number: int | None = None) -> list[int]:
    """The processes of workers on a node, or on all."""
    return [
        pid for pid in cluster.processes(number) if any("panglot_worker.life.loop" in word for word in command_of(pid))
    ]


def drivers(server: Server) -> list[psutil.Process]:
    return [child for child in server.workers() if any("node.driver" in word for word in child.cmdline())]
