"""What the routes of a dialect may do with its models while the server serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence

from panglot.engine.call import Fault
from panglot.errors import StartError
from panglot.settings import counts
from panglot.web.contract import RouteRefused
from panglot.web.models import Model, Models, Repository
from panglot.web.paths import unknown_model

LOOK_AGAIN = 0.05
"""Seconds between looks whether enough workers are ready."""
NO_FOLDER = "this server has no folder of models to load from (fix: --models DIR)"


class Administration:
    """The models of one dialect, as its routes see them. `repository` is None where the server has no folder."""

    def __init__(self, models: Models, repository: Repository | None, dialect: str) -> None:
        self._models = models
        self._repository = repository
        self._dialect = dialect

    def models(self) -> Sequence[Model]:
        return [model for model in self._models if model.package.dialect == self._dialect]

    def loading(self) -> Collection[str]:
        return self._models.loading()

    def absent(self) -> Mapping[str, str]:
        return self._models.absent()

    def find(self, name: str, version: str = "") -> Model:
        for model in reversed(self.models()):
            names = (model.name, model.contract.model_name)
            if name in names and version in ("", model.version, model.contract.model_version):
                return model
        raise RouteRefused(unknown_model(self._models, name, version))

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
            model.engine.scale(count)
        except ValueError as error:
            raise RouteRefused(Fault(400, "bad_request", f"workers: {error}")) from None
        except StartError as error:
            raise RouteRefused(Fault(400, "not_scaled", error.sentence())) from None
        until = time.monotonic() + wait
        while not self._has(model, least) and time.monotonic() < until:  # noqa: ASYNC110 - nobody tells of workers
            await asyncio.sleep(LOOK_AGAIN)
        return self._has(model, least)

    @staticmethod
    def _has(model: Model, least: int) -> bool:
        return all(size["ready"] >= least for size in model.engine.sizes())
