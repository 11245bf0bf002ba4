"""Connections to the fronts of a server that has several."""

from __future__ import annotations

import contextlib
from typing import Any

import httpx
import psutil

from support.server import Server, wait_until


def pids(server: Server) -> dict[int, int]:
    """The processes of the fronts, by their index."""
    return {front["front"]: front["pid"] for front in server.client.get("/status.json").json()["fronts"]}


def status_of(server: Server) -> dict[str, Any]:
    """What `/status.json` says once all fronts tell their figures: one that is busy for half a second is left out."""
    found: dict[str, Any] = {}

    def is_whole() -> bool:
        found.update(server.client.get("/status.json").json())
        return len(found["fronts"]) == len(server.fronts())

    wait_until(is_whole, 60)
    return found


def pid_of(server: Server, front: int) -> int:
    """The process of a front. One that is still beginning, or busy for half a second, is not among `pids`."""
    found: dict[int, int] = {}

    def is_told() -> bool:
        found.update(pids(server))
        return front in found

    wait_until(is_told, 60)
    return found[front]


def front_of(client: httpx.Client, processes: dict[int, int]) -> int | None:
    """The index of the front that has the connection of a client, which has one connection alone."""
    stream = client.get("/v2/health/live").extensions["network_stream"]
    own = stream.get_extra_info("client_addr")[1]
    for index, pid in processes.items():
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(each.raddr and each.raddr.port == own for each in psutil.Process(pid).net_connections("tcp")):
                return index
    return None


def client_of(server: Server, front: int, **options: Any) -> httpx.Client:
    """A client whose one connection a front has. Connections go to the front with the fewest."""
    found: list[httpx.Client] = []

    def is_found() -> bool:
        client = server.new_client(limits=httpx.Limits(max_connections=1), **options)
        if front_of(client, pids(server)) == front:
            found.append(client)
        return bool(found)

    wait_until(is_found, 60)
    return found[0]
