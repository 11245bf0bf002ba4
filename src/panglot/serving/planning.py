"""The plan of a server, made from paths, a folder of models, flags and variables."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panglot import dialects
from panglot.errors import LoadError, StartError
from panglot.packages.config_pbtxt import triton_config
from panglot.packages.model_folder import FIRST_VERSION, FoundModel, ModelFolder
from panglot.packages.package import Package
from panglot.settings import Settings, flag, resolving, table_of, variables
from panglot.settings.all_settings import former_names
from panglot.settings.resolving import Resolved
from panglot.settings.setting import SERVER
from panglot.terminal.text import brief

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
RESERVED = ("v2", "models", "stats", "metrics", "docs", "status")
"""Names that models cannot have: clients and pages use these paths for something else."""
FOLDER_SETTINGS = "panglot.toml"
"""The file of a folder of models: settings of the server, and of all models that do not set them themselves."""


@dataclass(frozen=True)
class ModelPlan:
    """A package that is to be served as a version of a model."""

    name: str
    version: str
    package: Package
    settings: Settings


@dataclass(frozen=True)
class ServingPlan:
    """Everything that a server is to serve, and how."""

    settings: Settings
    models: tuple[ModelPlan, ...]
    default: str
    """The name of the model with its routes at the root; empty: none."""
    planner: Planner | None = None
    """Makes further plans, where there may be several models."""
    failed: Mapping[str, StartError] = field(default_factory=dict)
    """Models that cannot be served, by name, while the others are served all the same."""
    warnings: tuple[str, ...] = ()
    callers_at_home: bool = False
    """Whether the first of several fronts has all workers of models that call others. It must know all who call models
    whose workers remember earlier calls. Decided at the start: all fronts must agree, whenever each was started."""

    joins: bool = False
    """Whether other fronts serve these models already. Then a front serves them too, whatever no longer fits."""

    @property
    def folder(self) -> ModelFolder | None:
        """The folder whose models are loaded and unloaded while the server serves, if there is one."""
        return self.planner.folder if self.planner is not None else None

    @property
    def fixed(self) -> frozenset[str]:
        """Models outside of the folder: they were named on the command line."""
        known = self.folder.names() if self.folder is not None else ()
        return frozenset(model.name for model in self.models).difference(known)


def alone(package: Package, settings: Settings, warnings: tuple[str, ...] = ()) -> ServingPlan:
    """The plan of a server that serves one package."""
    package = dialects.join(package, [(package.name, FIRST_VERSION, package)])
    model = ModelPlan(package.name, FIRST_VERSION, package, settings)
    return ServingPlan(settings, (model,), package.name, warnings=warnings)


def package_at(
    path: Path, flags: Mapping[str, Any], environ: Mapping[str, str], arguments: Sequence[str] = ()
) -> tuple[Package, Resolved]:
    """The package at a path, with arguments for its script, and its settings. Raises StartError."""
    return _settled(recognise(path, flags, environ), flags, environ, arguments)


def recognise(path: Path, flags: Mapping[str, Any], environ: Mapping[str, str]) -> Package:
    """The package at a path; its detector sees flags and variables. Raises StartError."""
    by_variable = {name: text for name, _, text in variables.given(environ)}
    return dialects.discover(path, str(flags.get("dialect", "")), {**by_variable, **flags})


def _settled(
    package: Package,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    arguments: Sequence[str] = (),
    shared: Path | None = None,
) -> tuple[Package, Resolved]:
    resolved = dialects.resolve(package, flags, environ, shared)
    arranged = dialects.arrange(package, resolved.settings, arguments)
    if arranged.defaults != package.defaults:
        # A file that the settings name has brought further defaults.
        resolved = dialects.resolve(arranged, flags, environ, shared)
    check_sleep(resolved.settings)
    return arranged, resolved


def check_sleep(settings: Settings) -> None:
    """Raise StartError for a model that may be without workers and is never to sleep."""
    counts = [settings.workers, *(size.workers for size in settings.pools.values())]
    for count in counts:
        if count.sleeps and not settings.sleep_after:
            raise StartError(
                f"workers {count}: only a sleeping model has no workers, and this one never sleeps",
                fix=f"--sleep-after 10m, or 1:{count.most} workers",
            )


def sleep_warnings(package: Package, settings: Settings) -> Iterator[str]:
    """Settings about sleep that have no effect, or an unexpected one, in sentences."""
    why = "streams run in its workers" if package.retained_bytes else "with --inline" if settings.inline else ""
    if why and (settings.sleep_after or settings.memory_budget or settings.gpu_memory_budget):
        yield f"the model never sleeps: {why}"
    if settings.gpu_memory_budget and not settings.gpu_memory and shutil.which("nvidia-smi") is None:
        unknown = "nobody knows how much GPU memory the model needs without nvidia-smi: it counts as all of the budget"
        yield f"{unknown} (fix: --gpu-memory SIZE, or gpu_memory in its panglot.toml)"


class Planner:
    """Plans the models of a server that may have several. Settings of the server are the same for all models."""

    def __init__(self, flags: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.flags = flags
        self.environ = environ
        where = flags.get("models") or resolving.resolve(flags_of_server(flags), environ).settings.models
        self.folder = ModelFolder(Path(where), dialects.archive_endings()) if where else None
        shared = self.folder.path / FOLDER_SETTINGS if self.folder is not None else None
        self.shared = shared if shared is not None and shared.is_file() else None
        self.server = resolving.resolve(flags_of_server(flags), environ, self.shared, scope=dialects.scope())
        self.settings = dataclasses.replace(self.server.settings, models=where)
        self.ineffective: list[set[str]] = []
        """For each planned model: the names of given settings without effect."""
        self.outdated: set[str] = set()
        """Settings that were given under an old name, for any model."""
        self.unused = {name for name in flags if name not in {**table_of(Settings), **former_names(Settings)}}
        """Flags for packages of a dialect, as long as no package of this dialect was planned."""

    def server_plan(self, words: Sequence[str], whole_folder: bool = True) -> ServingPlan:
        """The plan of a server for the models named on the command line, and all of the folder. Raises StartError.

        Without `whole_folder`, models of the folder that are not named are loaded only by requests.
        """
        named = [self.named(word) for word in words]
        failed: dict[str, StartError] = {}
        entries: list[FoundModel] = [*named]
        for name in self._names() if whole_folder else ():
            with self._kept_apart(name, failed):
                entries += self.versions(name)
        plans: list[ModelPlan] = []
        first = ""
        for entry in entries:
            with self._kept_apart(entry.name or entry.path.name, failed):
                plans.append(self.plan(entry))
                first = first or (plans[-1].name if entry in named else "")
        self._join(plans, failed)
        self._check(plans, failed)
        warnings = tuple(sorted(set.intersection(*self.ineffective) | self.outdated))
        at_home = any(plan.package.sticks_by for plan in plans)
        return ServingPlan(self.settings, tuple(plans), self._default(first, plans), self, failed, warnings, at_home)

    def _join(self, plans: list[ModelPlan], failed: dict[str, StartError]) -> None:
        """Complete the models by each other, and remove those that need others which are not served.

        Raises StartError without `partial`.
        """
        before = 0
        # Again after one was removed: other models may need it.
        while before != len(plans):
            before = len(plans)
            for plan in list(plans):
                models = [(other.name, other.version, other.package) for other in plans]
                with self._kept_apart(plan.name, failed):
                    joined = dataclasses.replace(plan, package=dialects.join(plan.package, models))
                    plans[plans.index(plan)] = joined
                if plan.name in failed:
                    plans[:] = [other for other in plans if other.name != plan.name]

    @contextlib.contextmanager
    def _kept_apart(self, name: str, failed: dict[str, StartError]) -> Iterator[None]:
        """With `partial`, note why a model cannot be served, and go on with others. Without it, raises StartError."""
        try:
            yield
        except StartError as error:
            if not self.settings.partial:
                raise
            failed[name] = error

    def _names(self) -> list[str]:
        return self.folder.names() if self.folder is not None else []

    def named(self, word: str) -> FoundModel:
        """The model that `PATH` or `NAME=PATH` on the command line means. Raises StartError."""
        name, equals, rest = word.partition("=")
        if equals and NAME.fullmatch(name) and not Path(word).exists():
            return FoundModel(checked(name), FIRST_VERSION, Path(rest))
        path = Path(word)
        return FoundModel("", FIRST_VERSION, path)

    def versions(self, name: str) -> list[FoundModel]:
        """The versions that the folder has of a name, which may be one model alone. Raises StartError."""
        if self.folder is None:
            raise StartError("this server has no folder of models", fix="--models DIR")
        with of_one_model(self.folder.path / name):
            entries = self.folder.versions(checked(name))
            config = entries[0].config if entries else None
            return triton_config.chosen(entries, config) if config is not None else entries

    def plan(self, entry: FoundModel) -> ModelPlan:
        """How a model is to be served. Raises StartError."""
        with of_one_model(entry.path):
            return self._plan(entry)

    def _plan(self, entry: FoundModel) -> ModelPlan:
        package = recognise(entry.path, self.flags, self.environ)
        name = entry.name or checked(package.name)
        if entry.config is not None:
            package = triton_config.applied(package, entry.config, name)
        foreign = dialects.scope(package.dialect).others
        flags = {key: value for key, value in self.flags.items() if key not in foreign}
        self.unused -= set(flags)
        package, resolved = _settled(package, flags, self.environ, (), self.shared)
        if package.runs_to_its_end:
            raise StartError("this package serves nothing", file=str(entry.path), fix="panglot serve it alone")
        self.ineffective.append(set(resolved.ineffective))
        self.outdated |= set(resolved.outdated)
        values = {key: getattr(self.settings, key) for key in server_settings()}
        own = package.config.name if package.config is not None else ""
        ignored = [key for key in values if own and resolved.sources[key] == own]
        notes = tuple(f"{key} in {package.config} is for the whole server and has no effect here" for key in ignored)
        package = dataclasses.replace(package, name=name, problems=(*package.problems, *notes))
        settings = dataclasses.replace(resolved.settings, **values)
        # Here, so that a contract which cannot be made is an error of this model alone.
        dialects.contract(package, settings)
        return ModelPlan(name, entry.version, package, settings)

    def _check(self, plans: Sequence[ModelPlan], failed: Mapping[str, StartError]) -> None:
        """Raise StartError for a server without models, two models of one name, or what only one model can have."""
        if not plans:
            if failed:
                raise next(iter(failed.values()))
            where = f"{self.folder.path} has no model in it" if self.folder is not None else "there is no model"
            raise StartError(where, fix="a folder in it, with a script or a model, is one")
        seen: set[tuple[str, str]] = set()
        for plan in plans:
            if (plan.name, plan.version) in seen:
                raise StartError(f"two models are called '{plan.name}'", fix=f"say NAME={plan.package.folder}")
            seen.add((plan.name, plan.version))
        if self.settings.inline:
            raise StartError("--inline is for one package", fix="serve it alone")
        for name in self.unused:
            dialects.scope(plans[0].package.dialect).refuse(name, flag(name))

    def _default(self, first: str, models: Sequence[ModelPlan]) -> str:
        """The name of the default model: by the settings, else the first model on the command line."""
        wanted, known = self.settings.default, dict.fromkeys(model.name for model in models)
        if wanted and wanted not in known:
            raise StartError(f"--default {wanted}: there is no such model", fix=f"there are {', '.join(known)}")
        return wanted or first


@contextlib.contextmanager
def of_one_model(path: Path) -> Iterator[None]:
    """Turn any exception into an error of one model, so that the other models are served. Raises StartError."""
    try:
        yield
    except StartError:
        raise
    except Exception as error:  # noqa: BLE001  one package must not cost the others
        problem = f"the server itself failed on this package: {brief(f'{type(error).__name__}: {error}', 200)}"
        stack = traceback.format_exc()
        raise LoadError(problem, file=str(path), fix="please report it", traceback=stack) from None


def flags_of_server(flags: Mapping[str, Any]) -> dict[str, Any]:
    former = former_names(Settings)
    return {name: value for name, value in flags.items() if former.get(name, name) in server_settings()}


def server_settings() -> list[str]:
    """The names of the settings that are for the whole server."""
    return [name for name, about in table_of(Settings).items() if about.metadata["scope"] == SERVER]


def checked(name: str) -> str:
    """A name that a model may have. Raises StartError."""
    if not NAME.fullmatch(name):
        rule = "letters, digits, `_`, `-` and `.`, at most 128"
        raise StartError(f"a model cannot be called '{name}'", fix=f"say NAME=PATH; a name has {rule}")
    if name in RESERVED:
        raise StartError(f"a model cannot be called '{name}': that name is reserved", fix="say NAME=PATH")
    return name
