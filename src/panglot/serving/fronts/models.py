"""The models of one front among several. The parent orders each change, so that all fronts serve the same models."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from panglot import dialects
from panglot.engine.engine import LocalEngine
from panglot.engine.sleep.engine_sleep import EngineSleep
from panglot.engine.sleep.memory_use import MemoryUse
from panglot.errors import StartError
from panglot.fronts import messages
from panglot.fronts.limits.member_bytes import MemberBytes
from panglot.fronts.member import Member
from panglot.fronts.messages import Message
from panglot.fronts.models.catalog import Catalog
from panglot.fronts.sleep.front import FrontSleep, PassedOnSleep
from panglot.serving.models import host as model_host
from panglot.serving.models.host import ModelHost
from panglot.serving.models.repository import FolderRepository
from panglot.serving.planning import ModelPlan, Planner, ServingPlan
from panglot.settings.counts import WorkerCount
from panglot.web.limits.shares import Share
from panglot.web.models import Model

log = logging.getLogger("panglot")
FURTHER = 1024
"""Slots for models that are loaded while the server serves, and for models that are about to end."""


def catalog_of(plan: ServingPlan) -> Catalog:
    """The models that a server with this plan begins with."""
    models = [(model.name, model.version) for model in plan.models]
    further = FURTHER if plan.folder is not None else 0
    catalog = Catalog(models, len(models) + further, plan.fixed)
    catalog.failed = {name: error.sentence() for name, error in plan.failed.items()}
    return catalog


def plan_of_now(plan: ServingPlan, catalog: Catalog) -> ServingPlan:
    """The plan of a front that starts: models that were loaded since the start of the server are planned now.

    Raises StartError when the folder no longer has a model that the other fronts serve.
    """
    models = [
        plan.models[slot] if catalog.planned.get(served) == slot else _planned(plan.planner, *served)
        for served, slot in catalog.served.items()
    ]
    served = [(model.name, model.version, model.package) for model in models]
    models = [
        model if model in plan.models else dataclasses.replace(model, package=dialects.join(model.package, served))
        for model in models
    ]
    # Once a front has loaded all models, another front serves the same or does not start: it drops no model by itself.
    partial = plan.settings.partial and not catalog.is_loaded
    settings = dataclasses.replace(plan.settings, partial=partial)
    return dataclasses.replace(plan, settings=settings, models=tuple(models), joins=catalog.is_loaded)


def _planned(planner: Planner | None, name: str, version: str) -> ModelPlan:
    assert planner is not None, "only models of a folder are loaded later"
    for entry in planner.versions(name):
        if entry.version == version:
            return model_host.installed(planner.plan(entry))
    problem = f"version {version} of '{name}' is served by the other fronts, and is no longer in the folder"
    raise StartError(problem, fix=f"put it back, or load or unload '{name}'")


class ModelsOfFront:
    """Carries out the orders of the parent, and passes the wishes of clients on to it."""

    def __init__(self, host: ModelHost, member: Member) -> None:
        self._host = host
        self._member = member
        self._repository: FolderRepository | None = None
        """The folder of the server, where it has one."""
        self._numbers = itertools.count(1)
        self._changes: dict[int, asyncio.Future[None]] = {}
        """The changes that clients of this front wait for, by number."""
        self._staging: dict[int, asyncio.Task[None]] = {}
        self._staged: dict[int, tuple[str, list[Model]]] = {}
        """Models that are loaded, and not served yet, with their name, by the number of the change."""
        self._loading: list[str] = []
        self._slots: dict[LocalEngine, int] = {}
        """The slots of engines that are about to end."""
        self._reserved: dict[str, Iterator[int]] = {}
        """By name: the slots for the versions of a model that is being loaded, in their order."""
        self._tasks: set[asyncio.Task[None]] = set()
        host.failed = dict(member.catalog.failed)
        host.on_drop = lambda model, why: member.tell(messages.Dropped(model.name, model.version, why))
        host.on_stop, host.on_stopped = self._ending, self._ended
        host.make_sleep = self._make_sleep
        member.on_change = self._heard

    def use(self, repository: FolderRepository) -> None:
        """Load and unload models of a folder."""
        self._repository = repository

    def _make_sleep(self, plan: ModelPlan, engine: LocalEngine, use: MemoryUse | None) -> EngineSleep:
        # Versions are made in their order. The catalog gives them their slots in the same order.
        reserved = self._reserved.get(plan.name)
        slot = next(reserved, None) if reserved is not None else self._member.catalog.served[plan.name, plan.version]
        if slot is None:
            raise StartError(f"'{plan.name}' has more versions than several fronts can load", fix="--fronts 1")
        if not engine.context.share.has_workers:
            return PassedOnSleep(engine, self._member.board.sleep.of_parent(slot))
        return FrontSleep(engine, slot, self._member, use)

    def begin_lending(self) -> None:
        """Let the models that this front began with lend calls to other fronts."""
        catalog = self._member.catalog
        for model in self._host.models:
            self._lend(model, catalog.served[model.name, model.version])
            scaled = catalog.scaled.get((model.name, model.version))
            if scaled is not None:
                model.engine.scale(WorkerCount(*scaled))
        for name, version in catalog.preferred:
            preferred = self._host.models.get(name, version)
            if preferred is not None:
                self._host.models.prefer(preferred)

    def is_needed(self, model: Model) -> bool:
        """Whether another front may still send calls of a model that goes."""
        hosted = self._host.hosted.get(model)
        lendings = self._member.siblings.lendings.values()
        return hosted is not None and any(each.engine is hosted.engine and each.is_needed for each in lendings)

    def _lend(self, model: Model, slot: int) -> None:
        self._member.lend(slot, self._host.hosted[model].engine, model.quota)
        if isinstance(model.quota, Share):
            model.quota.count_with(MemberBytes(self._member.board, self._member.index, slot))

    def _ending(self, engine: LocalEngine) -> None:
        slot = self._member.end_lending(engine)
        if slot is not None:
            self._slots[engine] = slot

    def _ended(self, engine: LocalEngine) -> None:
        slot = self._slots.pop(engine, None)
        if slot is not None:
            self._member.tell(messages.Gone(slot))

    # For clients, as a Repository

    async def load(self, name: str) -> None:
        """Have every front serve the versions that the folder has of a name now. Raises StartError; then none does."""
        await self._folder.check_load(name)
        await self._ask(name, load=True)

    async def unload(self, name: str) -> None:
        """Have no front serve a name any more. Raises StartError."""
        self._folder.check_unload(name)
        await self._ask(name, load=False)

    def loading(self) -> list[str]:
        return self._loading

    @property
    def _folder(self) -> FolderRepository:
        assert self._repository is not None, "without a folder nobody can ask for a change"
        return self._repository

    async def _ask(self, name: str, load: bool) -> None:
        number = next(self._numbers)
        outcome = self._changes[number] = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(lambda _: self._changes.pop(number, None))
        self._member.tell(messages.ChangeWanted(number, name, load))
        await outcome

    # For the administration of a dialect, as AllFronts

    def scale(self, model: Model, count: WorkerCount) -> None:
        """Have all fronts together have so many workers of a model. Raises StartError."""
        # Here first: it raises where the number of workers cannot be chosen.
        model.engine.scale(count)
        self._member.tell(messages.ScaleWanted(model.name, model.version, count.least, count.most))

    def prefer(self, model: Model) -> None:
        """Have all fronts prefer a version."""
        self._host.models.prefer(model)
        self._member.tell(messages.PreferWanted(model.name, model.version))

    async def all_of(self, model: Model) -> list[dict[str, Any]]:
        """The workers of a model in all fronts."""
        return await model.workers()

    # For the parent

    def _heard(self, message: Message) -> None:
        match message:
            case messages.StageModel(change, name, slots):
                reserved = self._reserved[name] = iter(slots)
                self._staging[change] = self._keep(self._stage(change, name, reserved))
            case messages.Switch(change, slots):
                name, staged = self._staged.pop(change)
                for model in staged:
                    self._lend(model, slots[model.version])
                self._folder.switch(name, staged)
                self._member.tell(messages.Switched(change))
            case messages.Unload(change, name):
                self._folder.switch(name, [])
                self._member.tell(messages.Switched(change))
            case messages.Drop(change, name, gone, why):
                self._keep(self._drop(change, gone))
                if why:
                    self._folder.note_failure(name, why)
            case messages.Scale(name, version, least, most):
                scaled = self._host.models.get(name, version)
                # None: the model has gone meanwhile.
                if scaled is not None:
                    scaled.engine.scale(WorkerCount(least, most))
            case messages.Prefer(name, version):
                preferred = self._host.models.get(name, version)
                if preferred is not None:
                    self._host.models.prefer(preferred)
            case messages.Loading(names):
                self._loading = names
            case messages.Changed():
                self._answer(message)

    async def _stage(self, change: int, name: str, reserved: Iterator[int]) -> None:
        try:
            staged = await self._folder.stage(name)
        except StartError as error:
            self._member.tell(messages.Staged(change, [], error.problem, error.file, error.line, error.fix))
        except Exception:
            # The parent waits for an answer of every front.
            log.exception("%s could not be loaded", name)
            self._member.tell(messages.Staged(change, [], f"the server itself failed on '{name}'", fix="see its log"))
        else:
            self._staged[change] = name, staged
            self._member.tell(messages.Staged(change, [model.version for model in staged]))
        finally:
            del self._staging[change]
            # A further load of the name, after this one was cancelled, has slots of its own.
            if self._reserved.get(name) is reserved:
                del self._reserved[name]

    async def _drop(self, change: int, slots: Sequence[int]) -> None:
        """Stop the models of a change, or their loading. After that no model has the slots of the change."""
        staging = self._staging.get(change)
        if staging is not None:
            staging.cancel()
            await asyncio.wait({staging})
        _, staged = self._staged.pop(change, ("", []))
        for model in staged:
            await self._host.stop(model)
        for slot in slots:
            self._member.tell(messages.Gone(slot))

    def _answer(self, answer: messages.Changed) -> None:
        outcome = self._changes.get(answer.number)
        # None, or done: the client has disconnected.
        if outcome is None or outcome.done():
            return
        if answer.problem:
            outcome.set_exception(StartError(answer.problem, file=answer.file, line=answer.line, fix=answer.fix))
        else:
            outcome.set_result(None)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
