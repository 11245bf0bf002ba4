"""The administration of a dialect's models by a client whose key is for some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from panglot.web.access.keys import KeyHolder
from panglot.web.contract import RouteRefused
from panglot.web.models import Model, ModelAdministration
from panglot_worker.line import wire


def reached_by(holder: KeyHolder | None, administration: ModelAdministration) -> ModelAdministration:
    """What a client may administer: everything without a key, or with one that is for all models."""
    if holder is None or (holder.key is not None and holder.key.models is None):
        return administration
    return ReachedModels(holder, administration)


class ReachedModels:
    """A `ModelAdministration` that leaves out the models that a key does not reach, and refuses those by name."""

    def __init__(self, holder: KeyHolder, of_all: ModelAdministration) -> None:
        self._holder = holder
        self._of_all = of_all

    def models(self) -> Sequence[Model]:
        return [model for model in self._of_all.models() if self._reaches(model.name)]

    def loading(self) -> Collection[str]:
        return [name for name in self._of_all.loading() if self._reaches(name)]

    def absent(self) -> Mapping[str, str]:
        return {name: why for name, why in self._of_all.absent().items() if self._reaches(name)}

    def find(self, name: str, version: str = "") -> Model:
        """As of the interface. Raises RouteRefused for a model of others too."""
        model = self._of_all.find(name, version)
        self._check(model.name)
        return model

    async def load(self, name: str) -> None:
        """As of the interface. Raises RouteRefused for a model of others too."""
        self._check(name)
        await self._of_all.load(name)

    async def unload(self, name: str) -> None:
        """As of the interface. Raises RouteRefused for a model of others too."""
        await self._of_all.unload(self.find(name).name)

    # What follows is asked of models that `models` or `find` gave.

    async def workers(self, model: Model) -> Sequence[dict[str, Any]]:
        return await self._of_all.workers(model)

    async def scale(self, model: Model, least: int, most: int, wait: float = 0.0) -> bool:
        return await self._of_all.scale(model, least, most, wait)

    def prefer(self, model: Model) -> None:
        self._of_all.prefer(model)

    async def ask(self, model: Model, head: wire.Head) -> bytes:
        return await self._of_all.ask(model, head)

    def _reaches(self, name: str) -> bool:
        key = self._holder.key
        return key is not None and key.reaches_model(name)

    def _check(self, name: str) -> None:
        fault = self._holder.forbids_model(name)
        if fault is not None:
            raise RouteRefused(fault)
