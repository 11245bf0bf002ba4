"""The actions of a dialect's routes on its models while the server serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Any, Protocol

from panglot.engine.call import Fault
from panglot.engine.interface import READY
from panglot.errors import StartError
from panglot.settings import counts
from panglot.settings.counts import WorkerCount
from panglot.web import questions
from panglot.web.contract import RouteRefused
from panglot.web.models import Model, Models, Repository
from panglot.web.paths import unknown_model
from panglot_worker.line import wire

LOOK_AGAIN = 0.05
"""Seconds between looks whether enough workers are ready."""
NO_FOLDER = "this server has no folder of models to load from (fix: --models DIR)"


class AllFronts(Protocol):
    """The models, and their workers, in all fronts of a server that has several."""

    def scale(self, model: Model, count: WorkerCount) -> None:
        """Have so many workers in all. Raises StartError."""

    def prefer(self, model: Model) -> None:
        """Have a version answer where a request names none."""

    async def all_of(self, model: Model) -> list[dict[str, Any]]:
        """All workers of a model."""


class Administration:
    """The models of one dialect, as its routes see them. `repository` is None where the server has no folder."""

    def __init__(self, models: Models, repository: Repository | None, others: AllFronts | None, dialect: str) -> None:
        """`others` is None where the server has one front."""
        self._models = models
        self._repository = repository
        self._others = others
        self._dialect = dialect

    def models(self) -> Sequence[Model]:
        return [model for model in self._models if model.package.dialect == self._dialect]

    def loading(self) -> Collection[str]:
        return self._models.loading()

    def absent(self) -> Mapping[str, str]:
        return self._models.absent()

    def find(self, name: str, version: str = "") -> Model:
        """The model of a name and version; without a version, the one that the name leads to. Raises RouteRefused."""
        for model in self.models():
            known = (model.version, model.contract.model_version)
            if version in known and name in model.names:
                return model
            if not version and name in self._models.names_leading_to(model):
                return model
        raise RouteRefused(unknown_model(self._models, name, version))

    def prefer(self, model: Model) -> None:
        if self._others is None:
            self._models.prefer(model)
        else:
            self._others.prefer(model)

    async def ask(self, model: Model, head: wire.Head) -> bytes:
        """The answer of a model's script to a question of the platform's administration. Raises RouteRefused."""
        return await questions.ask(model, head)

    async def load(self, name: str) -> None:
        await self._followed(self._folder().load(name))

    async def unload(self, name: str) -> None:
        model = self.find(name)
        await self._followed(self._folder().unload(model.name))

    def _folder(self) -> Repository:
        if self._repository is None:
            raise RouteRefused(Fault(400, "not_loaded", NO_FOLDER))
        return self._repository

    @staticmethod
    async def _followed(change: Awaitable[None]) -> None:
        try:
            await change
        except StartError as error:
            raise RouteRefused(Fault(400, "not_loaded", error.sentence())) from None

    async def scale(self, model: Model, least: int, most: int, wait: float = 0.0) -> bool:
        """Have so many workers, and tell whether enough are ready within `wait` seconds. Raises RouteRefused."""
        try:
            count = counts.parse(f"{least}:{most}" if most != least else f"{least or -1}")
            if count.sleeps and not model.settings.sleep_after:
                raise ValueError(f"at least 1 worker is always there without --sleep-after; say 1 to {most}")
            if self._others is None:
                model.engine.scale(count)
            else:
                self._others.scale(model, count)
        except ValueError as error:
            raise RouteRefused(Fault(400, "bad_request", f"workers: {error}")) from None
        except StartError as error:
            raise RouteRefused(Fault(400, "not_scaled", error.sentence())) from None
        until = time.monotonic() + wait
        while not (enough := await self._has(model, least)) and time.monotonic() < until:  # noqa: ASYNC110
            # No event tells that a worker has become ready, least of all one of another front.
            await asyncio.sleep(LOOK_AGAIN)
        return enough

    async def _has(self, model: Model, least: int) -> bool:
        # Only a model with one pool can be scaled.
        return [worker["state"] for worker in await self.workers(model)].count(READY) >= least

    async def workers(self, model: Model) -> Sequence[dict[str, Any]]:
        return model.engine.workers() if self._others is None else await self._others.all_of(model)
