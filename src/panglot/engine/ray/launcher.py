"""Starting workers on the nodes of a cluster: a placement, the package there, then the process."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panglot.engine.context import EngineContext
from panglot.engine.memory.pool_memory import PoolMemory
from panglot.engine.memory.retained import RetainedMemory
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.processes import process
from panglot.engine.processes.launcher import Launcher, MachineLost
from panglot.engine.processes.scratch import Scratch
from panglot.engine.ray import installing, needs
from panglot.engine.ray.cluster import Cluster
from panglot.engine.ray.files import Shipment
from panglot.engine.ray.needs import as_text
from panglot.engine.ray.node_worker import DOUBT, NodeWorker
from panglot.engine.ray.paths import there
from panglot.engine.ray.placement import FREE, STATES, USED, WAITING, Placement, PlacementLost
from panglot.engine.workers.worker import Worker
from panglot.packages import requirements

if TYPE_CHECKING:
    from panglot.engine.pools.pool import Pool

log = logging.getLogger("panglot.ray")
WORKER = ("panglot_worker.life.loop", "start")
SPARE = 10.0
"""Seconds that a placement without a worker stays reserved for the next."""


class NodeLauncher(Launcher):
    """Starts the workers of one pool on nodes. A worker's successor gets its placement."""

    def __init__(self, context: EngineContext, plan: PoolPlan, memory: PoolMemory, cluster: Cluster) -> None:
        super().__init__(context, plan, memory)
        # Folders to run in are made on the nodes, and memory that outlives a worker belongs to its agent.
        self.scratch, self.retained = Scratch({}), RetainedMemory(0)
        self.cluster = cluster
        self.shipment = Shipment()
        self.free: list[Placement] = []
        self._placements: set[Placement] = set()

    def record(self, pool: Pool, index: int, generation: int, clock: Callable[[], float]) -> Worker:
        return NodeWorker(pool, index, generation, clock)

    @property
    def outage(self) -> str:
        """Why no worker can be launched now: the cluster is out of reach, or there is no placement."""
        states = self.placements()
        if self.cluster.outage or states[FREE] or states[USED]:
            return self.cluster.outage
        nobody = f"no node of the cluster has {as_text(self._needs())} free"
        return nobody if states[WAITING] else "the nodes of the cluster cannot be reached"

    def _needs(self) -> dict[str, float]:
        return dict(self.settings.worker_resources) or {"cpu": 1.0}

    async def launch(self, worker: Worker, workers: int) -> None:
        """Start a worker at a placement. Raises OSError when there is none, or the process cannot be started there."""
        assert isinstance(worker, NodeWorker)
        placement = worker.placement = self._placement_for(worker)
        worker.step = "waiting for a placement"
        # Before anything waits: a placement that is lost tells the workers it knows.
        placement.workers[worker.generation] = worker
        try:
            await placement.ready
            # The time to load begins here: the wait for a placement does not count.
            worker.since = self.clock()
            await self._start(worker, placement)
        except (ValueError, OSError) as error:
            if isinstance(error, OSError) and not _is_of_the_network(error):
                raise
            why = str(error) or "its agent does not answer"
            # The agent goes on, if it lives: a placement is lost when its control connection is, which shows soon.
            await asyncio.sleep(DOUBT)
            if placement.is_lost:
                raise MachineLost(f"was lost with its placement while it was started ({why})") from None
            raise PlacementLost(f"{placement}: {why}") from None

    def _placement_for(self, worker: NodeWorker) -> Placement:
        """The placement of its predecessor, else one that is free, else a new one."""
        old = worker.predecessor
        if isinstance(old, NodeWorker) and old.placement is not None and not old.placement.is_lost:
            # Both run there until the old one ends: no second share of a node is reserved for that time.
            return old.placement
        self.free = [placement for placement in self.free if not placement.is_lost]
        if self.free:
            return self.free.pop()
        placement = self.cluster.ask(self._needs())
        self._placements = {placement, *(known for known in self._placements if not known.is_lost)}
        return placement

    def placements(self) -> dict[str, int]:
        states = dict.fromkeys(STATES, 0)
        for placement in self._placements:
            if not placement.is_lost:
                states[placement.state] += 1
        return states

    async def _start(self, worker: NodeWorker, placement: Placement) -> None:
        """Send the worker's own code and the package to the node, then start the process there."""
        worker.step = "sending the package"
        package = self.package
        placement.code = placement.code or await self.shipment.send(Path(process.worker_folder()), placement)
        moved = {process.worker_folder(): placement.code}
        if package.worker_half is not None:
            moved[str(package.worker_half)] = await self.shipment.send(package.worker_half, placement)
        if self.settings.ray_files != needs.SHARED:
            moved.update(await self._send_package(placement))
        worker.step, worker.folders = "starting", {path: here for here, path in moved.items()}
        self.cluster.folders.update(worker.folders)
        run = f"{os.getpid()}-{placement.number}-{worker.generation}"
        about = there(self._about(worker), moved)
        # The agent makes both before it starts the worker.
        run_folder = f"{placement.about['runs']}/{placement.about['pid']}-{run}"
        about["run_folder"] = run_folder if package.run_links else ""
        about["input_folder"] = f"{run_folder}-inputs" if package.stores_inputs else ""
        environment = process.environment(
            package.environment, threads=max(1, int(placement.needs.get("cpu", 1))), device=self._device(placement),
            pixels=self.settings.max_pixels,
        )  # fmt: skip
        launch = {
            "generation": worker.generation,
            "worker": placement.code,
            "folder": there(str(package.folder), moved),
            "entry": WORKER,
            "python": self.settings.python,
            "environment": there(environment, moved),
            "links": there({name: str(target) for name, target in package.run_links.items()}, moved),
            "run": run,
            "stores_inputs": package.stores_inputs,
            "retained": (worker.index, package.retained_bytes),
            "native_output": package.captures_native_output,
        }
        output = self._output(worker)
        output.wording = worker.at_home
        if self.settings.install:
            launch["python"] = await self._installed(worker, placement, launch)
        await worker.start_at(launch, {"package": about}, output)

    def _device(self, placement: Placement) -> str:
        """The device of a worker: the GPUs that Ray has given to its placement, if any."""
        if gpus := placement.about.get("gpus"):
            return f"cuda:{','.join(map(str, gpus))}"
        return self.settings.device

    async def _send_package(self, placement: Placement) -> dict[str, str]:
        """Send the package to the node. Returns the paths there of its folder, and of the folder above that counts."""
        root, above = self.package.root, self.package.above
        if above is None or above == root:
            return {str(root): await self.shipment.send(root, placement)}
        title = root.relative_to(above)
        path = await self.shipment.send(root, placement, str(title))
        return {str(root): path, str(above): str(Path(path).parents[len(title.parts) - 1])}

    def _about(self, worker: Worker) -> dict[str, Any]:
        """As for other workers, without what only this machine has: folders of files, and the decoder of video."""
        about = super()._about(worker)
        settings = about["settings"]
        video = {**settings["video"], "python": ""}
        sent = self.settings.ray_files != needs.SHARED
        settings = {**settings, "video": video, "videos_in_bodies": True, "sent": sent}
        return {**about, "settings": settings}

    async def _installed(self, worker: NodeWorker, placement: Placement, launch: dict[str, Any]) -> str:
        """The interpreter on the node that has what the package asks for. Raises OSError."""
        wish = requirements.wish(self.package)
        if not wish.commands:
            return self.settings.python
        worker.step, worker.installing = "installing what it asks for", True
        try:
            wish = wish._replace(folder=launch["folder"])
            return await installing.environment(placement, wish, launch, self._output(worker))
        finally:
            worker.step, worker.installing, worker.since = "starting", False, self.clock()

    def clean_up(self, worker: Worker) -> None:
        """Take a dead worker from its placement; the placement stays reserved for its successor for a while."""
        assert isinstance(worker, NodeWorker)
        self.scratch.remove(self._folder(worker))
        if worker.failure is not None:
            failure = there(worker.failure, worker.folders)
            worker.failure = {**failure, "traceback": worker.at_home(str(failure.get("traceback", "")))}
        placement = worker.placement
        if placement is None or placement.is_lost:
            return
        placement.workers.pop(worker.generation, None)
        if not placement.workers and placement not in self.free:
            self.free.append(placement)
            asyncio.get_running_loop().call_later(SPARE, self._release, placement)

    def _release(self, placement: Placement) -> None:
        # It may have been used and become free again since: then it goes sooner than after SPARE.
        if placement in self.free:
            self.free.remove(placement)
            placement.release()

    def close(self) -> None:
        """Give back all placements that are free."""
        super().close()
        self.rest()

    def rest(self) -> None:
        """Give back all placements that are free."""
        for placement in self.free:
            placement.release()
        self.free.clear()


def _is_of_the_network(error: OSError) -> bool:
    """Whether a machine cannot be reached, or has closed its connection."""
    return isinstance(error, TimeoutError | ConnectionError) or error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH)
