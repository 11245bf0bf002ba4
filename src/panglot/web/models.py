"""The models of one server. A model is a package that is served: with its engine, its contract, and what it counts."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from panglot.engine.call import Fault
from panglot.engine.interface import Engine
from panglot.metrics.counters import Metrics
from panglot.packages.model_folder import age
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, ErrorAnswer, InferRoute, neutral_error
from panglot.web.job_contract import ModelJobs
from panglot.web.limits.quota import ByteQuota
from panglot_worker.line import wire
from panglot_worker.line.description import Description

log = logging.getLogger("panglot")
Target = TypeVar("Target")
UNLOADED = "unloaded"
"""Why a model is not served although nothing is wrong with it."""


def _no_line(base: str, start: str = "") -> str:
    return ""


def _nothing() -> tuple[list[dict[str, Any]], dict[str, Path]]:
    return [], {}


@dataclass(eq=False)
class Model:
    """One version of one model."""

    name: str
    version: str
    package: Package
    settings: Settings
    engine: Engine
    metrics: Metrics
    contract: Contract
    quota: ByteQuota
    """The memory that its requests may use."""
    jobs: ModelJobs | None = None
    """Its jobs, for the pages of its dialect; set by the code that serves it."""
    curl_line: Callable[..., str] = _no_line
    """A line of curl that asks the script at a base address, once it is loaded; set by the code that makes the model.

    A further argument is what its paths begin with; empty: it is asked at the root.
    """

    examples: Callable[[], tuple[list[dict[str, Any]], dict[str, Path]]] = _nothing
    """The requests that the playground begins with, and the package's files they name; likewise."""

    workers_elsewhere: Callable[[], Awaitable[list[dict[str, Any]]]] | None = None
    """Its workers in other fronts of the server, where there are some; likewise."""

    async def workers(self) -> list[dict[str, Any]]:
        """Its workers as `Engine.workers` has them, with several fronts those of all."""
        return self.engine.workers() + (await self.workers_elsewhere() if self.workers_elsewhere is not None else [])

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and the one by which its platform's clients know it, where that differs."""
        return tuple(dict.fromkeys(filter(None, (self.name, self.contract.model_name))))

    @property
    def description(self) -> dict[str, Any]:
        """What its worker said when it was ready; empty before that."""
        return self.engine.description

    @property
    def api(self) -> Description:
        """What its worker said about the API of the script; empty before that."""
        return cast(Description, self.engine.description.get("api") or {})

    def at(self, contract: Contract) -> Model:
        """The same model as a further listener serves it, by a contract of its own."""
        return dataclasses.replace(self, contract=contract)

    def error_answer(self, route: InferRoute, fault: Fault, request_id: bytes) -> ErrorAnswer:
        """The answer for a fault as the route's platform writes it; in Panglot's form, should that writer raise."""
        write_error = route.error or self.contract.error
        try:
            return write_error(fault, request_id.decode("latin-1"))
        except Exception:
            log.exception("the platform's answer for the fault '%s' could not be written", fault.code)
            return neutral_error(fault, request_id.decode("latin-1"))


class Repository(NamedTuple):
    """Loads and unloads models of the server's folder while it serves. Both raise StartError."""

    load: Callable[[str], Awaitable[None]]
    """Serve what the folder has of a name now."""
    unload: Callable[[str], Awaitable[None]]
    """Serve no version of a name any more."""


class ModelAdministration(Protocol):
    """What routes of a dialect may do with the server's models of that dialect."""

    def models(self) -> Sequence[Model]:
        """Those that are served, of each name the oldest version first. `Model.engine` has their states, workers."""

    def loading(self) -> Collection[str]:
        """The names that are being loaded now, of whatever dialect."""

    def absent(self) -> Mapping[str, str]:
        """The names in the server's folder that are not served, of whatever dialect, and why."""

    def find(self, name: str, version: str = "") -> Model:
        """The model of a name and version; without a version the newest. Raises RouteRefused."""

    async def load(self, name: str) -> None:
        """Serve what the server's folder has of a name now. Raises RouteRefused."""

    async def unload(self, name: str) -> None:
        """Serve no version of a name any more; requests that have come are answered. Raises RouteRefused."""

    async def workers(self, model: Model) -> Sequence[dict[str, Any]]:
        """The workers of a model as `Engine.workers` has them, with several fronts those of all."""

    async def scale(self, model: Model, least: int, most: int, wait: float = 0.0) -> bool:
        """Have at least so many workers from now on, and at most so many. Raises RouteRefused.

        It waits up to `wait` seconds, and tells whether there are enough that are ready.
        """

    def prefer(self, model: Model) -> None:
        """Have a version answer wherever a request gives its name alone, until it is unloaded."""

    async def ask(self, model: Model, head: wire.Head) -> bytes:
        """What a worker answers to a request without a body. Raises RouteRefused."""


class Models:
    """All models by name and version. A request that names no version is for the preferred one, or for the newest."""

    def __init__(self, *models: Model, default: str = "") -> None:
        self._versions: dict[str, dict[str, Model]] = {}
        self._preferred: dict[str, Model] = {}
        """By name, also by that of its platform: the version that the administrator has chosen to answer to it."""
        self._watchers: list[Callable[[], None]] = []
        self.absent: Callable[[], Mapping[str, str]] = dict
        """The models that could be here and are not, by name, and why."""
        self.loading: Callable[[], Collection[str]] = tuple
        """The names of models that are being loaded by a request; some may be served already, as they were."""
        self._default = default
        """The name of the model whose routes are also at the root; empty: there is none."""
        for model in models:
            self.add(model)

    def __iter__(self) -> Iterator[Model]:
        """Every version of every model, in the order of their names' coming, the oldest version first."""
        for versions in self._versions.values():
            yield from sorted(versions.values(), key=lambda model: age(model.version))

    def __len__(self) -> int:
        return sum(map(len, self._versions.values()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._versions)

    @property
    def default_name(self) -> str:
        """The name of the model whose routes are at the root, whether it is there or not; empty: there is none."""
        return self._default

    @property
    def default(self) -> Model | None:
        """The model whose routes are at the root."""
        return self.get(self._default)

    def get(self, name: str, version: str = "") -> Model | None:
        """The model of this name and version; without a version the preferred one, or the newest."""
        versions = self._versions.get(name)
        if not versions:
            return None
        preferred = self._preferred.get(name)
        # By its own name alone: the platform's name for it may be the own name of another model.
        if not version and preferred is not None and preferred.name == name:
            return preferred
        return versions.get(version or max(versions, key=age))

    def prefer(self, model: Model) -> None:
        """Have a version answer to its names alone, until it goes. One that is loaded in its place does so too."""
        self._preferred.update(dict.fromkeys(model.names, model))
        self._changed()

    def names_leading_to(self, model: Model) -> tuple[str, ...]:
        """The names that mean this version where a request gives no version."""
        is_newest = self.get(model.name) is model
        return tuple(name for name in model.names if self._preferred.get(name, model if is_newest else None) is model)

    def versions(self, name: str) -> tuple[str, ...]:
        """The versions of a name, the oldest first."""
        return tuple(sorted(self._versions.get(name, ()), key=age))

    def add(self, model: Model) -> Model | None:
        """Have a model answer from now on. Returns the model that it replaces, if one had its name and version."""
        versions = self._versions.setdefault(model.name, {})
        former = versions.get(model.version)
        versions[model.version] = model
        # A version that is loaded again stays the preferred one.
        preferred = [name for name, chosen in self._preferred.items() if chosen is former]
        self._preferred.update(dict.fromkeys(preferred, model))
        self._changed()
        return former

    def remove(self, model: Model) -> None:
        """Have a model answer no more, unless another has taken its place already."""
        versions = self._versions.get(model.name, {})
        # A model that was loaded again has the same name and version.
        if versions.get(model.version) is model:
            del versions[model.version]
            if not versions:
                del self._versions[model.name]
            self._preferred = {name: chosen for name, chosen in self._preferred.items() if chosen is not model}
            self._changed()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever a model has come or gone."""
        self._watchers.append(watcher)

    def _changed(self) -> None:
        for watcher in self._watchers:
            watcher()


def only(model: Model) -> Models:
    """The models of a server that has one, which is its default."""
    return Models(model, default=model.name)


class NamedModels(Generic[Target]):
    """The targets of a route that several models share, by the name and version that a request gives."""

    def __init__(self) -> None:
        self._targets: dict[tuple[str, str], Target] = {}
        self._default: Target | None = None
        self._names: set[str] = set()
        self.first: Target
        """The target of the first model that has the route; there after the first `add`."""

    def add(self, target: Target, model: Model, alone: Collection[str], default: bool) -> None:
        """Add a model: by its own name and version, and by those that its platform's clients know.

        `alone`: those of its names that mean it without a version. `default`: it answers where no model is named.
        """
        if not self._names:
            self.first = target
        self._names.add(model.name)
        for name in model.names:
            for version in dict.fromkeys(filter(None, (model.version, model.contract.model_version))):
                self._targets.setdefault((name, version), target)
        for name in alone:
            self._targets.setdefault((name, ""), target)
        if default:
            self._default = target

    def find(self, name: str, version: str = "") -> Target | None:
        """The target of a name and version. Without a name: of the default, or of the only model."""
        if name:
            return self._targets.get((name, version))
        return self.first if self._default is None and len(self._names) == 1 else self._default
