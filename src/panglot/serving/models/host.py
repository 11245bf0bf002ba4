"""Loads the models of a server, a few at a time, and ends each model once its last request is answered."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot import dialects, inputs
from panglot.engine.call import Fault
from panglot.engine.engine import LocalEngine
from panglot.engine.keyed import KeyedEngine
from panglot.engine.memory import buffers
from panglot.engine.memory.buffers import Arena
from panglot.engine.pools import pipeline
from panglot.engine.ray import needs
from panglot.engine.ray.cluster import Cluster
from panglot.engine.sleep.budget import MemoryBudget
from panglot.engine.sleep.engine_sleep import EngineSleep
from panglot.engine.sleep.memory import Memory
from panglot.engine.sleep.memory_use import MemoryUse
from panglot.engine.sleep.own_sleep import OwnSleep
from panglot.engine.without_workers import pass_on
from panglot.engine.workers.shares import WHOLE, FrontShare
from panglot.errors import LoadError, StartError
from panglot.inputs.base import About, ClientRequest, Nothing
from panglot.inputs.curl import curl
from panglot.inputs.curl_line import curl_line
from panglot.inputs.examples import examples
from panglot.metrics.counters import Metrics
from panglot.packages.model_folder import FIRST_VERSION
from panglot.serving.file_changes import changes
from panglot.serving.links import Links
from panglot.serving.models import graphs, last_lives
from panglot.serving.models.callees import Callees
from panglot.serving.models.correlation import ParameterReader
from panglot.serving.models.home import needs_one_front, on_nodes
from panglot.serving.models.last_lives import LastLives
from panglot.serving.planning import ModelPlan, ServingPlan
from panglot.web.access.tokens import Access
from panglot.web.contract import Listener
from panglot.web.limits.quota import Quota
from panglot.web.limits.shares import Share, Shares
from panglot.web.models import Model, Models, Repository
from panglot.web.v2.repository import OFF

log = logging.getLogger("panglot")
MakeSleep = Callable[[ModelPlan, LocalEngine, MemoryUse | None], EngineSleep]
WORKER_STOP = 2.0
LOOK_AGAIN = 0.05
"""Seconds between looks whether a model that is to end has answered its last request."""


@dataclass(eq=False)
class Hosted:
    """A model with everything that has to be undone when it ends."""

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
        """Called when files of a package have changed, with `--reload`."""
        self.on_drop: Callable[[Model, str], None] = lambda model, why: None
        """Called with a model that could not be loaded at the start, and the reason, if the others are served."""
        self.on_stop: Callable[[LocalEngine], None] = lambda engine: None
        self.on_stopped: Callable[[LocalEngine], None] = lambda engine: None
        """Called before an engine ends, and after."""
        self.workers_elsewhere: Callable[[Model], Awaitable[list[dict[str, Any]]]] = _none_elsewhere
        """The workers of a model in the other fronts of the server."""
        self.described_elsewhere: Callable[[str, str], Awaitable[dict[str, Any]]] = _not_described
        """The description of a model of this name and version by another front, which has its workers."""
        self.shared_ports: frozenset[int] = frozenset()
        """Further ports that are open, and that models which are loaded later may share."""
        self.repository: Repository | None = None
        """Changes which models are served, where scripts and requests may do so."""
        self._callees = Callees(self.models)
        self._links = Links()
        # Of several fronts the first alone has workers on other machines: a cluster has one driver.
        self.cluster = Cluster(plan.settings) if plan.settings.ray and share.front == 0 else None
        self._shares = Shares(quota) if plan.planner is not None else None
        self._bodies = shared_bodies(plan) if self._shares is not None and self.cluster is None else None
        """The memory for bodies of all models. Models may call each other: one reads the answer of another there."""
        self._marks = itertools.count(1).__next__
        self._places = asyncio.Semaphore(plan.settings.load_at_once)
        limits = Memory(plan.settings.memory_budget, plan.settings.gpu_memory_budget)
        self._budget = MemoryBudget(limits, time.monotonic) if any(limits) else None
        self._memory_use = MemoryUse(limits.gpu > 0, time.monotonic) if any(limits) else None
        self.make_sleep: MakeSleep = lambda plan, engine, use: OwnSleep(engine, self._budget, use)
        """Makes the sleep of a model; with several fronts, one that does as their parent says."""
        folder = plan.settings.state_folder
        self._last_lives = LastLives(Path(folder) if folder else last_lives.default_folder())
        self._storing: set[asyncio.Task[None]] = set()

    # Making

    def make(self, plan: ModelPlan, instead_of: Collection[str] = ()) -> Model:
        """A model whose engine is not started. It is to replace the models of these full names. Raises StartError."""
        if self.cluster is not None:
            needs.check(plan.package, plan.settings)
        undo = contextlib.ExitStack()
        if self.share.front == 0:
            # One front makes the links, and has all workers of the models with links.
            links = self._links.fixed_paths(plan.package, plan.settings.link_paths, full_name(plan), instead_of)
            undo.enter_context(links)
        former = self.models.get(plan.name, plan.version)
        metrics = self.metrics if self._shares is None else former.metrics if former is not None else Metrics()
        quota = self._shares.new(plan.settings) if self._shares is not None else self.quota
        settings = on_nodes(plan.settings) if plan.settings.ray else plan.settings
        contract = dialects.contract(plan.package, settings)
        at_home = self.plan.callers_at_home and plan.package.calls_models
        at_home = at_home or needs_one_front(plan.package, settings, contract)
        share = self.share.of_model(pipeline.fewest_workers(settings), at_home)
        engine_kind = KeyedEngine if plan.package.sticks_by else LocalEngine
        engine = engine_kind(plan.package, settings, metrics, cluster=self.cluster, share=share, bodies=self._bodies)
        if isinstance(engine, KeyedEngine):
            engine.key_of = ParameterReader(plan.package.sticks_by, settings.max_json_depth)
        if (self._budget is not None or settings.sleep_after > 0) and not settings.inline:
            engine.sleeper = self.make_sleep(plan, engine, self._memory_use)
        model = Model(plan.name, plan.version, plan.package, settings, engine, metrics, contract, quota)
        equip(model, self.rules.is_closed)
        if self.share.fronts > 1:
            model.workers_elsewhere = lambda: self.workers_elsewhere(model)
        engine.made_calls.find, engine.made_calls.change = self._callees.find, self._change
        self.engines.append(engine)
        engine.all_engines = self.engines
        self.hosted[model] = Hosted(model, engine, undo)
        return model

    async def load(self, model: Model) -> None:
        """Start a model's workers, once few enough others are loading, and wait for them. Raises LoadError."""
        hosted = self.hosted[model]
        self._connect_chains()
        if await self._resumed(hosted):
            return
        async with self._places:
            if self._shares is not None:
                log.info("loading %s", full_name(model))
            if self.cluster is not None:
                await self.cluster.start()
            await hosted.engine.start()
            if not hosted.engine.context.share.has_workers:
                pass_on(hosted.engine, await self.described_elsewhere(model.name, model.version))
            await hosted.engine.ready.wait()
        # A failure sets `ready` too.
        if hosted.engine.failed is not None:
            raise hosted.engine.failed
        await self._served(hosted)

    async def _resumed(self, hosted: Hosted) -> bool:
        """Serve a model that sleeps until its first request, where an earlier process has loaded the same package."""
        engine = hosted.engine
        if engine.sleeper is None or not engine.context.share.has_workers:
            return False
        life = await asyncio.to_thread(self._last_lives.find, engine.package, engine.settings)
        if life is None or not engine.resume(life):
            return False
        if self.cluster is not None:
            await self.cluster.start()
        await engine.start()
        if self.share.front == 0:
            message = "is asleep until its first request: the same package was loaded before"
            log.info(message, extra={"package": full_name(hosted.model)})
        await self._served(hosted)
        return True

    async def _served(self, hosted: Hosted) -> None:
        """Begin the work that follows the first ready of a model: its watcher, and its last life."""
        if hosted.model.settings.reload and self.share.front == 0:
            hosted.watcher = asyncio.ensure_future(self._watch(hosted))
        sleeper = hosted.engine.sleeper
        if sleeper is not None:
            if self.share.front == 0:
                await self._store(hosted)
            sleeper.on_sleep = lambda: self._store_soon(hosted)

    async def _store(self, hosted: Hosted) -> None:
        """Store the last life of a model, unless its script chose its pools: only a load can tell them."""
        engine = hosted.engine
        if engine.sleeper is not None and not engine.is_divided_by_script:
            life = engine.sleeper.last_life()
            await asyncio.to_thread(self._last_lives.store, engine.package, engine.settings, life)

    def _store_soon(self, hosted: Hosted) -> None:
        task = asyncio.ensure_future(self._store(hosted))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def _change(self, what: str, name: str) -> Fault | None:
        """Load or unload a model for a script. Returns the fault if that is not possible."""
        if self.repository is None:
            return OFF
        try:
            await (self.repository.load if what == "load" else self.repository.unload)(name)
        except StartError as error:
            return Fault(400, "not_loaded", error.sentence())
        return None

    # Starting and stopping the server

    def begin(self) -> None:
        """Make all models of the plan; they answer that they are loading. Raises StartError."""
        for plan in self.plan.models:
            self.models.add(self.make(plan))
        self._connect_chains()

    def _connect_chains(self) -> None:
        """Let workers of models in chains share memory with the workers that get their results. Before they start."""
        for engine in self.engines:
            if engine.chain is not None and self._bodies is not None:
                engine.chain.connect(self._marks)

    async def load_all(self) -> None:
        """Load all models. Raises LoadError when one cannot be, or with `partial` when none can."""
        loads = [asyncio.ensure_future(self._or_drop(model, self.load(model))) for model in list(self.models)]
        try:
            await asyncio.gather(*loads)
        finally:
            # If one fails, `gather` raises and the other loads go on.
            for load in loads:
                load.cancel()
        for model in list(self.models):
            await self._or_drop(model, graphs.check(model, self.models, joins=self.plan.joins))

    async def _or_drop(self, model: Model, work: Awaitable[None]) -> None:
        """Await a part of the loading of a model; with `partial` the others are served without it. Raises LoadError."""
        try:
            await work
        except LoadError as error:
            # Also for the last model: a server without models has nothing to serve.
            if not self.plan.settings.partial or len(self.models) == 1:
                raise
            about = {"package": model.name, "traceback": error.traceback.rstrip()}
            log.error("%s is not served: %s", full_name(model), error.sentence(), extra=about)
            self.failed[model.name] = error.sentence()
            self.on_drop(model, error.sentence())
            self.models.remove(model)
            await self.stop(model)

    def check(self) -> None:
        """Raise the LoadError of a model that could not be loaded, where that ends the server."""
        for hosted in self.hosted.values():
            if hosted.engine.failed is not None and not hosted.engine.draining:
                raise hosted.engine.failed

    def step(self) -> str:
        """The present step of the loading, in a few words."""
        for hosted in self.hosted.values():
            if not hosted.engine.ready.is_set():
                steps = [worker.step for pool in hosted.engine.pools for worker in pool.workers if worker.step]
                if steps:
                    return steps[0] if self._shares is None else f"{full_name(hosted.model)}: {steps[0]}"
        return "starting"

    def reload(self, name: str = "") -> None:
        """Load the script of a model again while the old one serves on; without a name the scripts of all models."""
        for hosted in self.hosted.values():
            if name in ("", hosted.model.name):
                hosted.engine.reload()

    async def describe_again(self) -> None:
        """Ask the front that has the workers of a model for its description again: the script may have changed."""
        # A copy: models come and go meanwhile.
        for model, hosted in list(self.hosted.items()):
            if not hosted.engine.context.share.has_workers:
                description = await self._described_while_hosted(model)
                hosted.engine.description = description or hosted.engine.description

    async def _described_while_hosted(self, model: Model) -> dict[str, Any] | None:
        """The description of a model by another front; None where the model ends first."""
        asking = asyncio.ensure_future(self.described_elsewhere(model.name, model.version))
        try:
            # That front may have ended the model already, and then it never answers.
            while model in self.hosted and not asking.done():
                await asyncio.wait({asking}, timeout=LOOK_AGAIN)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()

    @property
    def is_reloading(self) -> bool:
        """Whether a worker is still to be replaced by one with the new script."""
        pools = (pool for hosted in self.hosted.values() for pool in hosted.engine.pools)
        return any(pool.supervisor.reloads.are_under_way for pool in pools)

    async def _watch(self, hosted: Hosted) -> None:
        async for names in changes(hosted.model.package.folder):
            log.info("changed: %s; loading %s again", ", ".join(names), hosted.model.name)
            self.on_change(hosted)

    def description_of(self, name: str, version: str) -> dict[str, Any] | None:
        """The description of the latest model of a name and version, also of a model that is not served yet."""
        versions = [hosted for model, hosted in self.hosted.items() if (model.name, model.version) == (name, version)]
        return versions[-1].engine.description if versions else None

    def drain(self) -> None:
        """Let the engines know that the server is stopping."""
        for hosted in self.hosted.values():
            hosted.engine.draining = True
            hosted.engine.closed = hosted.model.contract.refuses_in_drain

    async def close(self) -> None:
        await asyncio.gather(*(self.stop(model) for model in list(self.hosted)), *self._storing)
        if self._bodies is not None:
            self._bodies.close()
        if self.cluster is not None:
            await self.cluster.close()

    # Letting go

    async def retire(self, model: Model) -> None:
        """Have a model take no more requests, answer those it has, and end."""
        self.models.remove(model)
        hosted = self.hosted[model]
        until = time.monotonic() + self.plan.settings.drain
        while self._is_needed(hosted) and time.monotonic() < until:
            await asyncio.sleep(LOOK_AGAIN)
        await self.stop(model)

    def _is_needed(self, hosted: Hosted) -> bool:
        """Whether a model has requests, or the next model of a chain is still to read results of it."""
        gives = hosted.engine.main.memory.gives
        # A request whose body is still being read is not in `live` yet.
        return bool(hosted.engine.live or self.in_use(hosted.model) or (gives is not None and gives.used))

    async def stop(self, model: Model) -> None:
        """End a model's workers and undo what was made for it."""
        # First: `retire` and `close` may both call this, and the second call must find nothing to do.
        hosted = self.hosted.pop(model, None)
        if hosted is None:
            return
        if hosted.watcher is not None:
            hosted.watcher.cancel()
        if hosted.engine.sleeper is not None:
            hosted.engine.sleeper.close()
        self.on_stop(hosted.engine)
        await hosted.engine.stop(WORKER_STOP)
        # After its workers: until they have ended, `bury_orphans` must know that their processes have an owner.
        self.engines.remove(hosted.engine)
        if self._shares is not None and isinstance(model.quota, Share):
            self._shares.release(model.quota)
        hosted.undo.close()
        self.on_stopped(hosted.engine)


async def _none_elsewhere(model: Model) -> list[dict[str, Any]]:
    return []


async def _not_described(name: str, version: str) -> dict[str, Any]:
    raise AssertionError(f"no other front has the workers of {name}")


def shared_bodies(plan: ServingPlan) -> Arena | None:
    """Memory for the bodies of all models of a server; None when the system gives none."""
    largest = max(settings.max_body for settings in (plan.settings, *(model.settings for model in plan.models)))
    return buffers.create(plan.settings.request_memory, largest, "for bodies")


def full_name(model: Model | ModelPlan) -> str:
    """The name of a model and, where it matters, its version."""
    return model.name if model.version == FIRST_VERSION else f"{model.name} version {model.version}"


def at_listener(model: Model, listener: Listener, token: bool) -> Model:
    """The model for a further listener of its package."""
    there = model.at(listener.contract)
    equip(there, token)
    return there


def equip(model: Model, token: bool) -> None:
    """Give a model the functions that show how a request is made."""
    model.curl_line = functools.partial(line_for, model, token)
    model.examples = lambda: examples(model.package, about(model))


def line_for(model: Model, token: bool, base: str, start: str = "") -> str:
    """The line of curl for a request, by the model's description. Its paths begin with `start`."""
    first = model.contract.routes[0]
    if "POST" not in first.methods:
        path = start + first.sample(model.name, model.version)
        return curl(base, ClientRequest(path, Nothing(), method=first.methods[0]), token)
    return curl_line(base, about(model, start), model.package.folder, token)


def about(model: Model, start: str = "") -> About:
    """The facts about a model from which requests are made."""
    route = model.contract.routes[0]
    path = start + route.sample(model.name, model.version)
    return inputs.about_package(model.package, path, model.api)


def installed(plan: ModelPlan) -> ModelPlan:
    """The plan with an environment for the requirements of its package, if one is to be made. Raises StartError."""
    if not plan.settings.install or plan.settings.ray:
        return plan
    from panglot.packages import install

    python = install.environment(plan.package, plan.settings)
    return dataclasses.replace(plan, settings=dataclasses.replace(plan.settings, python=python))
