"""The Ray driver: a process of its own beside the front, in an interpreter that has the cluster's Ray.

Ray ends its driver when the cluster has gone, and the front must outlive that. The two exchange JSON lines. The front
sends `{"address", "secret", "certificate", "ports", "server"}`, then `{"do": "start_agent", "id", "needs"}` and `{"do":
"release", "id"}`. This process sends `connected` or `failed`, then for each placement `agent_started` (where its agent
listens), `waiting`, or `lost` (why).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import json
import logging
import os
import signal
import sys
from typing import Any, Dict

PR_SET_PDEATHSIG = 1
BY_VALUE = (
    "life.loader",
    "life.output_pipes",
    "line.encryption",
    "node.handshake",
    "node.listing",
    "node.shelf",
    "node.worker_process",
    "node.agent",
)
"""The modules of Panglot that Ray sends along, because nodes do not have them."""
PATIENCE = 10.0
"""Seconds without a placement after which the front is told that it is still waiting."""
TRIES = 3
"""How many agents are requested at most for a placement, if they die before they have begun."""
LONGEST = 2000
"""Characters of a reason that are passed on."""


def main() -> None:
    """Connect to the cluster, and do what the front says until it goes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The messages get a descriptor of their own before Ray is imported: its output goes to the log.
    out = os.fdopen(os.dup(1), "w", 1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def tell(**value: Any) -> None:
        out.write(json.dumps(value) + "\n")

    first = json.loads(sys.stdin.readline())
    try:
        ray = connect(first["address"])
    except BaseException as error:  # noqa: BLE001  Ray raises anything, SystemExit too
        tell(**{"is": "failed", "kind": type(error).__name__, "why": reason(error)})
        os._exit(1)
    tell(**{"is": "connected", "ray": ray.__version__, "token": has_token(), "nodes": nodes(ray)})
    asyncio.run(Driver(ray, first, tell).run())
    os._exit(0)


def reason(error: BaseException) -> str:
    """The message of an exception; the middle of a long text is left out."""
    why = str(error).strip() or repr(error)
    return why if len(why) <= LONGEST else why[: LONGEST // 2] + "\n...\n" + why[-LONGEST // 2 :]


def connect(address: str) -> Any:
    """The module `ray`, connected. Raises what it raises."""
    ray = importlib.import_module("ray")
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="panglot")
    return ray


def has_token() -> bool:
    """Whether this process authenticates itself to the cluster by a token."""
    return os.environ.get("RAY_AUTH_MODE", "").lower() == "token"


def nodes(ray: Any) -> Any:
    return [
        {"address": node["NodeManagerAddress"], "resources": node["Resources"]} for node in ray.nodes() if node["Alive"]
    ]


class Driver:
    """Asks Ray for placements, and reports their state to the front."""

    def __init__(self, ray: Any, first: Dict[str, Any], tell: Any) -> None:
        self.ray = ray
        self.secret = bytes.fromhex(first["secret"])
        self.certificate = first["certificate"]
        self.ports = tuple(first["ports"])
        self.server = first["server"]
        self.tell = tell
        self.actors: Dict[int, Any] = {}
        cloudpickle = importlib.import_module("ray.cloudpickle")
        for name in BY_VALUE:
            cloudpickle.register_pickle_by_value(importlib.import_module("panglot_worker." + name))
        agent = importlib.import_module("panglot_worker.node.agent")
        self.agent = ray.remote(placed_class(agent.NodeAgent))

    async def run(self) -> None:
        """Carry out the front's orders until it goes."""
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(end_with(raylet_of(self.ray)))}
        while True:
            # Reading blocks, so it has a thread; the event loop must go on for Ray's replies.
            line = await loop.run_in_executor(None, sys.stdin.readline)
            if not line:
                return
            said = json.loads(line)
            if said["do"] == "start_agent":
                task = loop.create_task(self._start_agent(int(said["id"]), said["needs"]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            else:
                self._release(said["id"])

    async def _start_agent(self, number: int, needs: Dict[str, Any]) -> None:
        """Find a placement. An agent that dies before it has begun, for example with its node, is requested again."""
        for left in reversed(range(TRIES)):
            if await self._tried(number, needs, left):
                return

    async def _tried(self, number: int, needs: Dict[str, Any], left: int) -> bool:
        """Have an agent made, report where it is, and wait for its end. False: it must be tried again.

        Once the agent is reported, the front decides when it ends.
        """
        started = False
        try:
            actor = self.actors[number] = self._make_agent(number, needs)
            opening = asyncio.ensure_future(wait_for(actor.begin.remote()))
            # Not `asyncio.wait_for`, which would cancel the opening when the time is up: the placement may still come.
            waited, _ = await asyncio.wait({opening}, timeout=PATIENCE)
            if not waited:
                self.tell(**{"is": "waiting", "id": number, "nodes": nodes(self.ray)})
            self.tell(**{"is": "agent_started", "id": number, **await opening})
            started = True
            await wait_for(actor.until_gone.remote())
        except Exception as error:  # noqa: BLE001  Ray raises anything
            if isinstance(error, ConnectionError):
                # This exception means that the server of Ray's client has gone: only a new connection helps.
                os._exit(1)
            # The front may have released the placement while we waited for it.
            wanted = number in self.actors
            if left and wanted and not started and isinstance(error, self.ray.exceptions.RayActorError):
                self._release(number)
                return False
            # Ray wraps the exception of an agent in one of its own.
            cause = getattr(error, "cause", None) or error
            self.tell(**{"is": "lost", "id": number, "kind": type(cause).__name__, "why": reason(cause)})
        if started:
            # It has ended already; `_release` would ask Ray to kill it.
            self.actors.pop(number, None)
        else:
            self._release(number)
        return True

    def _release(self, number: int) -> None:
        """End the agent of a placement, if it lives."""
        with contextlib.suppress(Exception):
            self.ray.kill(self.actors.pop(number))

    def _make_agent(self, number: int, needs: Dict[str, Any]) -> Any:
        return self.agent.options(
            num_cpus=needs.get("cpu", 0),
            num_gpus=needs.get("gpu", 0),
            resources={name: amount for name, amount in needs.items() if name not in ("cpu", "gpu", "memory")},
            memory=needs.get("memory") or None,
            # A restarted agent would have no workers and no connections: the front asks for a new one instead.
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=8,
            # An agent may outlive this driver: it ends with the front's control connection, not with Ray's driver.
            lifetime="detached",
            # The driver before this may have requested the same placement.
            name="panglot-%s-%d-%d" % (self.server, number, os.getpid()),
            scheduling_strategy="SPREAD",
        ).remote(self.secret, self.ports, self.certificate)


def raylet_of(ray: Any) -> str:
    """The socket of the raylet on this machine that connects us to the cluster; empty for ray:// addresses."""
    node = getattr(getattr(getattr(ray, "_private", None), "worker", None), "_global_node", None)
    return str(getattr(node, "raylet_socket_name", "") or "")


async def end_with(raylet: str) -> None:
    """End this process when the raylet does: Ray itself would not notice, and could place nothing any more."""
    if raylet:
        with contextlib.suppress(OSError):
            reader, _writer = await asyncio.open_unix_connection(raylet)
            await reader.read()
        os._exit(1)


async def wait_for(reference: Any) -> Any:
    return await reference


def placed_class(agent: Any) -> Any:
    """The agent as Ray's actor, which knows the node it is on."""

    class PlacedAgent(agent):  # type: ignore[misc]
        async def begin(self) -> Any:
            ray = importlib.import_module("ray")
            node = ray.get_runtime_context().get_node_id()
            return {**await self.open(ray.util.get_node_ip_address(), node[:8]), "gpus": ray.get_gpu_ids()}

    return PlacedAgent
