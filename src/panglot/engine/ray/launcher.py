"""Starting workers on the nodes of a cluster: a place, the package there, then the process."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from panglot.engine.context import EngineContext
from panglot.engine.memory.kept import KeptMemory
from panglot.engine.memory.lending import PoolMemory
from panglot.engine.pools.pipeline import PoolPlan
from panglot.engine.processes import process
from panglot.engine.processes.launcher import Launcher, MachineLost
from panglot.engine.processes.scratch import Scratch
from panglot.engine.ray import installing, needs
from panglot.engine.ray.cluster import Cluster
from panglot.engine.ray.files import Shipment
from panglot.engine.ray.needs import told
from panglot.engine.ray.paths import there
from panglot.engine.ray.place import FREE, STATES, USED, WAITING, NodePlace, PlaceLost
from panglot.engine.ray.worker import DOUBT, NodeWorker
from panglot.engine.workers.owner import WorkerOwner
from panglot.engine.workers.worker import Worker
from panglot.packages import requirements

log = logging.getLogger("panglot.ray")
WORKER = ("panglot_worker.life.loop", "start")
KEPT = 10.0
"""Seconds that a place without a worker is kept for the next."""


class NodeLauncher(Launcher):
    """Starts the workers of one pool on nodes. A worker's successor gets its place."""

    def __init__(self, context: EngineContext, plan: PoolPlan, memory: PoolMemory, cluster: Cluster) -> None:
        super().__init__(context, plan, memory)
        # Folders to run in are made on the nodes, and memory that outlives a worker is kept by its keeper.
        self.scratch, self.kept = Scratch({}), KeptMemory(0)
        self.cluster = cluster
        self.shipment = Shipment()
        self.free: list[NodePlace] = []
        self._places: set[NodePlace] = set()

    def record(self, owner: WorkerOwner, index: int, generation: int, clock: Callable[[], float]) -> Worker:
        return NodeWorker(owner, index, generation, clock)

    @property
    def outage(self) -> str:
        """Why no worker can be launched now: the cluster is out of reach, or there is no place."""
        states = self.places()
        if self.cluster.outage or states[FREE] or states[USED]:
            return self.cluster.outage
        nobody = f"no node of the cluster has {told(self._needs())} free"
        return nobody if states[WAITING] else "the nodes of the cluster cannot be reached"

    def _needs(self) -> dict[str, float]:
        return dict(self.settings.place) or {"cpu": 1.0}

    async def launch(self, worker: Worker, workers: int) -> None:
        """Start a worker at a place. Raises OSError when there is none, or the process cannot be started there."""
        assert isinstance(worker, NodeWorker)
        place = worker.place = self._place_for(worker)
        worker.step = "waiting for a place"
        place.tenants[worker.generation] = worker
        try:
            await place.ready
            worker.since = self.clock()
            await self._start(worker, place)
        except (ValueError, TimeoutError, ConnectionError) as error:
            why = str(error) or "its keeper does not answer"
            # The keeper goes on, if it lives: a place is lost when its control connection is, which shows soon.
            await asyncio.sleep(DOUBT)
            if place.is_lost:
                raise MachineLost(f"was lost with its place while it was started ({why})") from None
            raise PlaceLost(f"{place}: {why}") from None

    def _place_for(self, worker: NodeWorker) -> NodePlace:
        """The place of its predecessor, else one that is free, else a new one."""
        old = worker.predecessor
        if isinstance(old, NodeWorker) and old.place is not None and not old.place.is_lost:
            return old.place
        self.free = [place for place in self.free if not place.is_lost]
        if self.free:
            return self.free.pop()
        place = self.cluster.ask(self._needs())
        self._places = {place, *(known for known in self._places if not known.is_lost)}
        return place

    def places(self) -> dict[str, int]:
        states = dict.fromkeys(STATES, 0)
        for place in self._places:
            if not place.is_lost:
                states[place.state] += 1
        return states

    async def _start(self, worker: NodeWorker, place: NodePlace) -> None:
        """Have our code and the package on the node, then start the process there."""
        worker.step = "sending the package"
        package = self.package
        place.code = place.code or await self.shipment.send(Path(process.worker_folder()), place)
        moved = {process.worker_folder(): place.code}
        if package.worker_half is not None:
            moved[str(package.worker_half)] = await self.shipment.send(package.worker_half, place)
        if self.settings.ray_files != needs.SHARED:
            moved.update(await self._send_package(place))
        worker.step, worker.folders = "starting", {path: here for here, path in moved.items()}
        self.cluster.folders.update(worker.folders)
        run = f"{os.getpid()}-{place.number}-{worker.generation}"
        about = there(self._about(worker), moved)
        if package.run_links:
            about["run_folder"] = f"{place.about['runs']}/{place.about['pid']}-{run}"
        environment = process.environment(
            package.environment, threads=max(1, int(place.needs.get("cpu", 1))), device=self._device(place),
            pixels=self.settings.max_pixels,
        )  # fmt: skip
        launch = {
            "generation": worker.generation,
            "worker": place.code,
            "folder": there(str(package.folder), moved),
            "entry": WORKER,
            "python": self.settings.python,
            "environment": there(environment, moved),
            "links": there({name: str(target) for name, target in package.run_links.items()}, moved),
            "run": run,
            "kept": (worker.index, package.kept_bytes),
        }
        output = self._output(worker)
        output.wording = worker.at_home
        if self.settings.install:
            launch["python"] = await self._installed(worker, place, launch)
        await worker.start_at(launch, {"package": about}, output)

    def _device(self, place: NodePlace) -> str:
        """What a worker is to compute on: the GPUs that Ray has given to its place, if any."""
        if gpus := place.about.get("gpus"):
            return f"cuda:{','.join(map(str, gpus))}"
        return self.settings.device

    async def _send_package(self, place: NodePlace) -> dict[str, str]:
        """Have the package on the node. Returns where its folder lies there, and the one above it that counts."""
        root, above = self.package.root, self.package.above
        if above is None or above == root:
            return {str(root): await self.shipment.send(root, place)}
        title = root.relative_to(above)
        path = await self.shipment.send(root, place, str(title))
        return {str(root): path, str(above): str(Path(path).parents[len(title.parts) - 1])}

    def _about(self, worker: Worker) -> dict[str, Any]:
        """As anywhere, less what only this machine has: the files of uploads, and an interpreter that decodes."""
        about = super()._about(worker)
        told = about["settings"]
        video = {**told["video"], "python": ""}
        sent = self.settings.ray_files != needs.SHARED
        return {**about, "settings": {**told, "video": video, "videos_in_bodies": True, "sent": sent}}

    async def _installed(self, worker: NodeWorker, place: NodePlace, launch: dict[str, Any]) -> str:
        """The interpreter on the node that has what the package asks for. Raises OSError."""
        wish = requirements.wish(self.package)
        if not wish.commands:
            return self.settings.python
        worker.step, worker.installing = "installing what it asks for", True
        try:
            wish = wish._replace(folder=launch["folder"])
            return await installing.environment(place, wish, launch, self._output(worker))
        finally:
            worker.step, worker.installing, worker.since = "starting", False, self.clock()

    def clean_up(self, worker: Worker) -> None:
        """Take a dead worker from its place; the place is kept for its successor for a while."""
        assert isinstance(worker, NodeWorker)
        if worker.failure is not None:
            failure = there(worker.failure, worker.folders)
            worker.failure = {**failure, "traceback": worker.at_home(str(failure.get("traceback", "")))}
        place = worker.place
        if place is None or place.is_lost:
            return
        place.tenants.pop(worker.generation, None)
        if not place.tenants and place not in self.free:
            self.free.append(place)
            asyncio.get_running_loop().call_later(KEPT, self._let_go, place)

    def _let_go(self, place: NodePlace) -> None:
        if place in self.free:
            self.free.remove(place)
            place.leave()

    def close(self) -> None:
        """Give back all places that are free."""
        super().close()
        for place in self.free:
            place.leave()
        self.free.clear()
