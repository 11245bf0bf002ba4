"""Models of the server's folder: loading, reloading and unloading them while the server serves."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from panglot import dialects
from panglot.errors import LoadError, StartError
from panglot.packages.package import Package
from panglot.serving.models import graphs
from panglot.serving.models import host as model_host
from panglot.serving.models.host import ModelHost, full_name
from panglot.serving.planning import ModelPlan, Planner
from panglot.web.models import UNLOADED, Model

log = logging.getLogger("panglot")


class FolderRepository:
    """Changes which models of a folder are served. A new version serves before the old one goes."""

    def __init__(self, hosted: ModelHost, planner: Planner, fixed: Collection[str]) -> None:
        """`fixed` are models that were named on the command line. They are never unloaded."""
        self.model_host = hosted
        self.models = hosted.models
        self.planner = planner
        self._fixed = fixed
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._loading: Counter[str] = Counter()
        """How often each name is being loaded now."""
        self._going: set[asyncio.Task[None]] = set()
        """Work that may outlast the request for it."""

    async def load(self, name: str) -> None:
        """Serve the versions that the folder has of a name now, instead of the old ones. Raises StartError.

        If one of them cannot be loaded, the old versions are served on.
        """
        await self.check_load(name)
        self._loading[name] += 1
        task = self._keep(self._load(name))
        task.add_done_callback(lambda done: self._loading.subtract((name,)))
        # The load goes on if the client that asked for it disconnects.
        await asyncio.shield(task)

    async def unload(self, name: str) -> None:
        """Serve no version of a name any more; requests that have come are answered. Raises StartError."""
        self.check_unload(name)
        async with self._locks[name]:
            self.switch(name, [])

    async def check_load(self, name: str) -> None:
        """Raise StartError for a name that the folder does not have, or for a fixed model."""
        self._check(name)
        await asyncio.to_thread(self.planner.versions, name)

    def check_unload(self, name: str) -> None:
        """Raise StartError for a name that is not served, or for a fixed model."""
        self._check(name)
        if name not in self.models.names:
            raise StartError(f"there is no model '{name}' to unload", fix=f"there is {self._there()}")

    def loading(self) -> set[str]:
        """The names that are being loaded now."""
        return set(+self._loading)

    def absent(self) -> dict[str, str]:
        """The models that are not served, and why."""
        known = self.planner.folder.names() if self.planner.folder is not None else []
        names = {*self.model_host.failed, *known} - set(self.models.names)
        return {name: self.model_host.failed.get(name, UNLOADED) for name in sorted(names)}

    def _check(self, name: str) -> None:
        if name in self._fixed:
            raise StartError(f"model '{name}' was named when the server was started, and stays")

    def _there(self) -> str:
        return ", ".join(name for name in self.models.names if name not in self._fixed) or "none"

    async def _load(self, name: str) -> None:
        async with self._locks[name]:
            try:
                staged = await self.stage(name)
            except StartError as error:
                self.note_failure(name, error.sentence())
                raise
            self.switch(name, staged)

    async def stage(self, name: str) -> list[Model]:
        """Load the versions that the folder has of a name now, without serving them: all or none. Raises StartError."""
        staged: list[Model] = []
        try:
            served = [(model.name, model.version, model.package) for model in self.models if model.name != name]
            plans = await asyncio.to_thread(self._plans, name, served)
            for plan in plans:
                staged.append(await self._loaded(plan, plans))  # noqa: PERF401  what has loaded is stopped when one fails
            others = [model for model in self.models if model.name != name]
            for model in staged:
                await graphs.check(model, (*others, *staged))
        except BaseException as error:
            # Also when the load is cancelled: workers that nobody serves would run on.
            for model in staged:
                await self.model_host.stop(model)
            if isinstance(error, StartError):
                stack = error.traceback.rstrip() if isinstance(error, LoadError) else ""
                about = {"package": name, "traceback": stack}
                log.error("%s is not loaded: %s", name, error.sentence(), extra=about)
            raise
        return staged

    def switch(self, name: str, staged: Sequence[Model]) -> None:
        """Serve a name by these models from now on. Its old models end when their requests are answered."""
        for model in staged:
            former = self.models.add(model)
            log.info("%s is ready", full_name(model))
            if former is not None:
                self._retire(former)
        self.model_host.failed.pop(name, None)
        for model in list(self.models):
            if model.name == name and model not in staged:
                self._retire(model)

    def note_failure(self, name: str, why: str) -> None:
        """Note why a model could not be loaded, if no version of it is served."""
        if name not in self.models.names:
            self.model_host.failed[name] = why

    def _plans(self, name: str, served: list[tuple[str, str, Package]]) -> list[ModelPlan]:
        """The plan of each version of a name, beside the other models that are served. Raises StartError."""
        versions = [model_host.installed(self.planner.plan(entry)) for entry in self.planner.versions(name)]
        models = [*served, *((plan.name, plan.version, plan.package) for plan in versions)]
        plans = [dataclasses.replace(plan, package=dialects.join(plan.package, models)) for plan in versions]
        # It grows with each plan, and is read at the start alone.
        self.planner.ineffective.clear()
        for plan in plans:
            contract = dialects.contract(plan.package, plan.settings)
            opened = self.model_host.shared_ports
            alone = [listener for listener in contract.listeners if not (listener.shared and listener.port in opened)]
            if alone or contract.runs_with_server is not None:
                raise StartError(
                    f"model '{name}' listens on ports of its own", fix="serve it from the start, or in its own server"
                )
        return plans

    async def _loaded(self, plan: ModelPlan, plans: list[ModelPlan]) -> Model:
        """The loaded model of a version, whose plan is one of `plans`. Raises StartError."""
        staying = {full_name(other) for other in plans if other is not plan}
        former_ones = {full_name(model) for model in self.model_host.hosted if model.name == plan.name}
        model = self.model_host.make(plan, former_ones - staying)
        try:
            await self.model_host.load(model)
        except BaseException:
            await self.model_host.stop(model)
            raise
        return model

    def _retire(self, model: Model) -> None:
        """Remove a model from the paths at once. It ends when its last request is answered."""
        self.models.remove(model)
        log.info("%s goes", full_name(model))
        self._keep(self.model_host.retire(model))

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return task
