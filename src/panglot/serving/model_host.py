"""Loads the models of a server, a few at a time, and lets them go once their last request is answered."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from panglot import dialects, inputs
from panglot.engine.engine import LocalEngine
from panglot.engine.ray import needs
from panglot.engine.ray.cluster import Cluster
from panglot.engine.sleep.budget import MemoryBudget
from panglot.engine.sleep.memory import Memory
from panglot.engine.workers.shares import WHOLE, FrontShare
from panglot.errors import LoadError
from panglot.inputs.base import About, ClientRequest, Nothing
from panglot.inputs.curl import curl
from panglot.inputs.curl_line import curl_line
from panglot.inputs.examples import examples
from panglot.metrics.counters import Metrics
from panglot.packages.model_folder import FIRST_VERSION
from panglot.serving import last_lives
from panglot.serving.callees import Callees
from panglot.serving.file_changes import changes
from panglot.serving.last_lives import LastLives
from panglot.serving.links import Links
from panglot.serving.planning import ModelPlan, ServingPlan
from panglot.settings import Settings
from panglot.web.access.tokens import Access
from panglot.web.contract import Listener
from panglot.web.limits.quota import Quota
from panglot.web.limits.shares import Share, Shares
from panglot.web.models import Model, Models

log = logging.getLogger("panglot")
WORKER_STOP = 2.0
LOOK_AGAIN = 0.05
"""Seconds between looks whether a model that is to go has answered its last request."""


@dataclass(eq=False)
class Hosted:
    """A model with what has to be undone when it goes."""

    model: Model
    engine: LocalEngine
    undo: contextlib.ExitStack
    watcher: asyncio.Task[None] | None = None


class ModelHost:
    """Owns every engine of a server."""

    def __init__(
        self, plan: ServingPlan, rules: Access, quota: Quota, metrics: Metrics, share: FrontShare = WHOLE
    ) -> None:
        self.plan = plan
        self.share = share
        self.rules = rules
        self.quota = quota
        self.metrics = metrics
        self.models = Models(default=plan.default)
        self.hosted: dict[Model, Hosted] = {}
        self.engines: list[LocalEngine] = []
        self.failed = {name: error.sentence() for name, error in plan.failed.items()}
        """Models that could not be loaded, by name, and why."""
        self.in_use: Callable[[Model], bool] = lambda model: False
        """Whether a request for a model is under way; the owner of the connections sets it."""
        self.on_change: Callable[[Hosted], None] = lambda hosted: hosted.engine.reload()
        """What is done when files of a package have changed, with `--reload`."""
        self.shared_ports: frozenset[int] = frozenset()
        """Further ports that are open, and that models which are loaded later may share."""
        self._callees = Callees(self.models)
        self._links = Links()
        self.cluster = Cluster(plan.settings) if plan.settings.ray else None
        self._shares = Shares(quota) if plan.planner is not None else None
        self._places = asyncio.Semaphore(plan.settings.load_at_once)
        limits = Memory(plan.settings.memory_budget, plan.settings.gpu_memory_budget)
        self._budget = MemoryBudget(limits, time.monotonic) if any(limits) else None
        folder = plan.settings.state_folder
        self._last_lives = LastLives(Path(folder) if folder else last_lives.default_folder())
        self._storing: set[asyncio.Task[None]] = set()

    # Making

    def make(self, plan: ModelPlan, instead_of: Collection[str] = ()) -> Model:
        """A model whose engine is not started. It is to replace the models of these full names. Raises StartError."""
        if self.cluster is not None:
            needs.check(plan.package, plan.settings)
        undo = contextlib.ExitStack()
        links = self._links.fixed_paths(plan.package, plan.settings.link_paths, full_name(plan), instead_of)
        undo.enter_context(links)
        former = self.models.get(plan.name, plan.version)
        metrics = self.metrics if self._shares is None else former.metrics if former is not None else Metrics()
        quota = self._shares.new(plan.settings) if self._shares is not None else self.quota
        settings = plan.settings if self.cluster is None else on_nodes(plan.settings)
        engine = LocalEngine(
            plan.package, settings, metrics, cluster=self.cluster, budget=self._budget, share=self.share
        )
        contract = dialects.contract(plan.package, settings)
        model = Model(plan.name, plan.version, plan.package, settings, engine, metrics, contract, quota)
        equip(model, self.rules.is_closed)
        engine.made_calls.find = self._callees.find
        self.engines.append(engine)
        engine.all_engines = self.engines
        self.hosted[model] = Hosted(model, engine, undo)
        return model

    async def load(self, model: Model) -> None:
        """Start a model's workers, once few enough others are loading, and wait for them. Raises LoadError."""
        hosted = self.hosted[model]
        if await self._resumed(hosted):
            return
        async with self._places:
            if self._shares is not None:
                log.info("loading %s", full_name(model))
            if self.cluster is not None:
                await self.cluster.start()
            await hosted.engine.start()
            await hosted.engine.ready.wait()
        if hosted.engine.failed is not None:
            raise hosted.engine.failed
        await self._served(hosted)

    async def _resumed(self, hosted: Hosted) -> bool:
        """Serve a model that sleeps until its first request, where an earlier process has loaded the same package."""
        engine = hosted.engine
        if engine.sleeper is None:
            return False
        life = await asyncio.to_thread(self._last_lives.find, engine.package, engine.settings)
        if life is None or not engine.resume(life):
            return False
        if self.cluster is not None:
            await self.cluster.start()
        await engine.start()
        message = "is asleep until its first request: the same package was loaded before"
        log.info(message, extra={"package": full_name(hosted.model)})
        await self._served(hosted)
        return True

    async def _served(self, hosted: Hosted) -> None:
        """Look after a model from its first ready on."""
        if hosted.model.settings.reload and self.share.front == 0:
            hosted.watcher = asyncio.ensure_future(self._watch(hosted))
        sleeper = hosted.engine.sleeper
        if sleeper is not None:
            await self._store(hosted)
            sleeper.on_sleep = lambda: self._store_soon(hosted)

    async def _store(self, hosted: Hosted) -> None:
        """Store what is to be remembered of a model, unless its script chose its pools, which takes a load to know."""
        engine = hosted.engine
        if engine.sleeper is not None and not engine.is_divided_by_script:
            life = engine.sleeper.last_life()
            await asyncio.to_thread(self._last_lives.store, engine.package, engine.settings, life)

    def _store_soon(self, hosted: Hosted) -> None:
        task = asyncio.ensure_future(self._store(hosted))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    # Starting and stopping the server

    def begin(self) -> None:
        """Make all models of the plan; they answer that they are loading. Raises StartError."""
        for plan in self.plan.models:
            self.models.add(self.make(plan))

    async def load_all(self) -> None:
        """Load all models. Raises LoadError when one cannot be, or with `partial` when none can."""
        loads = [asyncio.ensure_future(self._load_or_drop(model)) for model in list(self.models)]
        try:
            await asyncio.gather(*loads)
        finally:
            for load in loads:
                load.cancel()

    async def _load_or_drop(self, model: Model) -> None:
        try:
            await self.load(model)
        except LoadError as error:
            if not self.plan.settings.partial or len(self.models) == 1:
                raise
            about = {"package": model.name, "traceback": error.traceback.rstrip()}
            log.error("%s is not served: %s", full_name(model), error.sentence(), extra=about)
            self.failed[model.name] = error.sentence()
            self.models.remove(model)
            await self.stop(model)

    def check(self) -> None:
        """Raise the LoadError of a model that could not be loaded, where that ends the server."""
        for hosted in self.hosted.values():
            if hosted.engine.failed is not None and not hosted.engine.draining:
                raise hosted.engine.failed

    def engines_by_position(self) -> dict[int, LocalEngine]:
        """The engines of the models in the plan, by their position in it. A model that was dropped has none."""
        models = [self.models.get(plan.name, plan.version) for plan in self.plan.models]
        return {index: self.hosted[model].engine for index, model in enumerate(models) if model is not None}

    def step(self) -> str:
        """What is being loaded now, in a few words."""
        for hosted in self.hosted.values():
            if not hosted.engine.ready.is_set():
                steps = [worker.step for pool in hosted.engine.pools for worker in pool.workers if worker.step]
                if steps:
                    return steps[0] if self._shares is None else f"{full_name(hosted.model)}: {steps[0]}"
        return "starting"

    def reload(self, name: str = "") -> None:
        """Load the script of a model again while the old one serves on; without a name those of all."""
        for hosted in self.hosted.values():
            if name in ("", hosted.model.name):
                hosted.engine.reload()

    @property
    def is_reloading(self) -> bool:
        """Whether a worker is still to be replaced by one with the new script."""
        pools = (pool for hosted in self.hosted.values() for pool in hosted.engine.pools)
        return any(pool.supervisor.reloads.are_under_way for pool in pools)

    async def _watch(self, hosted: Hosted) -> None:
        async for names in changes(hosted.model.package.folder):
            log.info("changed: %s; loading %s anew", ", ".join(names), hosted.model.name)
            self.on_change(hosted)

    def drain(self) -> None:
        """Let the engines know that the server is stopping."""
        for hosted in self.hosted.values():
            hosted.engine.draining = True
            hosted.engine.closed = hosted.model.contract.refuses_in_drain

    async def close(self) -> None:
        await asyncio.gather(*(self.stop(model) for model in list(self.hosted)), *self._storing)
        if self.cluster is not None:
            await self.cluster.close()

    # Letting go

    async def retire(self, model: Model) -> None:
        """Have a model take no more requests, answer those it has, and end."""
        self.models.remove(model)
        hosted = self.hosted[model]
        until = time.monotonic() + self.plan.settings.drain
        # A request whose body is still being read is not in `live` yet.
        while (hosted.engine.live or self.in_use(model)) and time.monotonic() < until:
            await asyncio.sleep(LOOK_AGAIN)
        await self.stop(model)

    async def stop(self, model: Model) -> None:
        """End a model's workers and undo what was made for it."""
        # First: `retire` and `close` may both come here, and the second finds nothing to do.
        hosted = self.hosted.pop(model, None)
        if hosted is None:
            return
        if hosted.watcher is not None:
            hosted.watcher.cancel()
        if self._budget is not None and hosted.engine.sleeper is not None:
            self._budget.remove(hosted.engine.sleeper)
        await hosted.engine.stop(WORKER_STOP)
        # After its workers: until they are dead, `bury_orphans` must know their processes.
        self.engines.remove(hosted.engine)
        if self._shares is not None and isinstance(model.quota, Share):
            self._shares.give_back(model.quota)
        hosted.undo.close()


def on_nodes(settings: Settings) -> Settings:
    """The settings of a model with workers on other machines: no memory can be shared with these."""
    return dataclasses.replace(settings, share_from=0, handoff_slot=0)


def full_name(model: Model | ModelPlan) -> str:
    """The name of a model and, where it matters, its version."""
    return model.name if model.version == FIRST_VERSION else f"{model.name} version {model.version}"


def at_listener(model: Model, listener: Listener, token: bool) -> Model:
    """The model as a further listener of its package has it."""
    there = model.at(listener.contract)
    equip(there, token)
    return there


def equip(model: Model, token: bool) -> None:
    """Give a model what it needs to show how a request is made."""
    model.curl_line = functools.partial(line_for, model, token)
    model.examples = lambda: examples(model.package, about(model))


def line_for(model: Model, token: bool, base: str, start: str = "") -> str:
    """The line of curl for a request, by what the worker of the model says; `start` is what its paths begin with."""
    first = model.contract.routes[0]
    if "POST" not in first.methods:
        path = start + first.sample(model.name, model.version)
        return curl(base, ClientRequest(path, Nothing(), method=first.methods[0]), token)
    return curl_line(base, about(model, start), model.package.folder, token)


def about(model: Model, start: str = "") -> About:
    """What is known of a model for asking it."""
    route = model.contract.routes[0]
    path = start + route.sample(model.name, model.version)
    return inputs.about_package(model.package, path, model.api)


def installed(plan: ModelPlan) -> ModelPlan:
    """The plan with an environment that has what the package requires, if it is to be made here. Raises StartError."""
    if not plan.settings.install or plan.settings.ray:
        return plan
    from panglot.packages import install

    python = install.environment(plan.package, plan.settings)
    return dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, python=python))
