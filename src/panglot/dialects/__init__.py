"""The conventions scripts are written in: found by being here, or by the entry point group `panglot.dialects`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import os
import textwrap
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from panglot.dialects.base import Dialect, from_module, missing
from panglot.errors import StartError
from panglot.packages.model_folder import ModelFolder
from panglot.packages.package import Package
from panglot.packages.source import unreadable
from panglot.settings import Settings, resolving, suggestion, table_of
from panglot.settings.resolving import Resolved, SettingsScope
from panglot_worker.files.package_files import UnreadableFile
from panglot_worker.line.description import TensorDescription

if TYPE_CHECKING:
    from panglot.web.contract import Contract

GROUP = "panglot.dialects"
HERE = Path(__file__).parent
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
"""Endings of files that are unpacked. A dialect may add others, by `ARCHIVES` of its detector."""
MOST_LOOKED_INTO = 50
"""How many folders of a folder that is no package are searched for packages."""


@functools.cache
def known() -> Mapping[str, Dialect]:
    """All dialects by name. Raises StartError for one that cannot be used.

    A dialect of a distribution is read and checked here. Of ours, the folders are checked here, and each module when it
    is loaded.
    """
    folders = sorted(entry for entry in HERE.iterdir() if (entry / "detect.py").is_file())
    dialects = {folder.name: Dialect(folder.name, f"{__name__}.{folder.name}", folder) for folder in folders}
    for dialect in dialects.values():
        if problems := missing(dialect):
            raise dialect.unusable("; ".join(problems))
    for entry in metadata.entry_points(group=GROUP):
        brought_by = entry.dist.name if entry.dist is not None else entry.value
        if entry.name in dialects:
            raise StartError(f"{brought_by} brings a dialect '{entry.name}', and there is one", fix="uninstall it")
        dialects[entry.name] = from_module(entry.name, entry.value, brought_by)
    return MappingProxyType(dialects)


def find(name: str) -> Dialect:
    """The dialect of this name. Raises StartError."""
    if name not in known():
        fix = suggestion(name, known()) or f"use one of {', '.join(known())}"
        raise StartError(f"there is no dialect '{name}'", fix=fix)
    return known()[name]


def fallback() -> Dialect:
    """The dialect that is tried last. Its detector says what a path lacks, where the other detectors return None."""
    return next(dialect for dialect in known().values() if _says(dialect, "FALLBACK"))


def _says(dialect: Dialect, word: str) -> bool:
    return bool(getattr(dialect.load("detect"), word, False))


# From a path to a package


def discover(path: Path, dialect: str = "", given: Mapping[str, Any] | None = None) -> Package:
    """Recognise a package. Raises StartError when the path is missing, empty, ambiguous or not servable.

    `given` holds the settings of flags and variables, for detectors that need one of their own.
    """
    forced = find(dialect) if dialect else None
    if not os.path.exists(path):  # Path.exists raises OSError for a name that is too long
        siblings = [child.name for child in path.parent.iterdir()] if os.path.isdir(path.parent) else []
        raise StartError(f"{path} does not exist", fix=suggestion(path.name, siblings))
    if not (path.is_file() or path.is_dir()):
        raise StartError("this is neither a file nor a folder", file=str(path), fix="name a package")
    where = path.resolve()
    # First of all: a detector, also the one that is forced, gets the folder and never the archive.
    ending = _archive_ending(where)
    if ending:
        return _in_archive(where, ending, dialect, given)
    if forced is not None:
        return _insist(forced, where, given or {})
    last = fallback()
    others = [candidate for candidate in known().values() if candidate.name != last.name]
    modest = [candidate for candidate in others if _says(candidate, "YIELDS")]
    recognised = _recognised([candidate for candidate in others if candidate not in modest], where, given or {})
    # Only now: a model file beside a script holds the weights of this script, and is no package itself.
    recognised = recognised or _recognised(modest, where, given or {})
    if len(recognised) > 1:
        # A setting that only one of the dialects has decides between them.
        meant = [package for package in recognised if _has_own(package.dialect, given or {})]
        recognised = meant if len(meant) == 1 else recognised
    if len(recognised) > 1:
        what = " or ".join(f"{package.dialect} ({package.reasons[0]})" for package in recognised)
        raise StartError(f"this could be {what}", file=str(path), fix=f"say which: --dialect {recognised[0].dialect}")
    return recognised[0] if recognised else _insist(last, where, given or {})


def _has_own(dialect: str, given: Mapping[str, Any]) -> bool:
    return any(given.get(name) for name in own_settings(find(dialect)))


def _archive_ending(path: Path) -> str:
    """The ending of an archive, such as `.tar.gz`; empty for a path that is no archive."""
    if path.suffix == ".py" or not path.is_file():
        return ""
    endings = (ending for ending in archive_endings() if path.name.lower().endswith(ending))
    return max(endings, key=len, default="")


def archive_endings() -> tuple[str, ...]:
    """The endings of files that are unpacked: the common ones, and the ones that a single dialect adds."""
    return (*ARCHIVES, *(ending for dialect in known().values() for ending in _endings(dialect)))


def _endings(dialect: Dialect) -> tuple[str, ...]:
    """The endings of archives that only packages of this dialect have."""
    return tuple(getattr(dialect.load("detect"), "ARCHIVES", ()))


def _in_archive(path: Path, ending: str, dialect: str, given: Mapping[str, Any] | None) -> Package:
    """Recognise the package in an archive. Detectors see the folder it is unpacked in. Raises StartError."""
    from panglot.packages import archive_cache

    folder = archive_cache.unpacked(path)
    # An ending of one dialect alone decides: without a package of this dialect in it, the archive is refused.
    owners = [name for name, known_one in known().items() if ending in _endings(known_one)]
    try:
        package = discover(folder, dialect or (owners[0] if len(owners) == 1 else ""), given)
    except StartError as error:
        # Users know the archive and its contents, but not the folder it was unpacked to.
        error.file = error.file.replace(str(folder), str(path), 1)
        raise
    # The folder is named by a digest, which is no name for a model.
    name = path.name[: -len(ending)] or path.name if package.name == folder.name else package.name
    return dataclasses.replace(package, name=name, archive=path, unpacked=folder)


def _recognised(dialects: list[Dialect], path: Path, given: Mapping[str, Any]) -> list[Package]:
    return [package for dialect in dialects if (package := _detect(dialect, path, given)) is not None]


def _detect(dialect: Dialect, path: Path, given: Mapping[str, Any]) -> Package | None:
    detect = dialect.load("detect").detect
    takes_settings = len(inspect.signature(detect).parameters) > 1
    try:
        package: Package | None = detect(path, given) if takes_settings else detect(path)
    except OSError as error:
        fix = "give this user the right to read it" if isinstance(error, PermissionError) else ""
        problem = f"it cannot be read: {error.strerror or error}"
        raise StartError(problem, file=str(error.filename or path), fix=fix) from None
    except UnreadableFile as error:
        raise unreadable(error) from None
    # Both are what CPython raises for hostile nesting in a file that it parses.
    except (RecursionError, MemoryError):
        raise StartError("something in it is nested too deeply to be read", file=str(path)) from None
    return package and dataclasses.replace(package, worker_half=dialect.worker_half)


def _insist(dialect: Dialect, path: Path, given: Mapping[str, Any]) -> Package:
    package = _detect(dialect, path, given)
    if package is None:
        looked = dialect.load("detect").LOOKS_FOR
        raise StartError(f"this is no {dialect.name} package", file=str(path), fix=f"{dialect.name} needs {looked}")
    return package


def arrange(package: Package, settings: Settings, arguments: Sequence[str] = ()) -> Package:
    """The package, completed by its settings and by the arguments for its script. Raises StartError."""
    package = dataclasses.replace(package, arguments=(*package.arguments, *arguments))
    own = getattr(find(package.dialect).load("detect"), "arrange", None)
    arranged: Package = own(package, settings) if own is not None else package
    return arranged


def join(package: Package, models: Sequence[tuple[str, str, Package]]) -> Package:
    """The package, completed by the other models of the server, each with its name and version. Raises StartError."""
    own = getattr(find(package.dialect).load("detect"), "join", None)
    joined: Package = own(package, models) if own is not None else package
    return joined


def check_loaded(package: Package, models: Sequence[tuple[str, str, Package, TensorDescription | None]]) -> None:
    """Check a package that calls other models of the server by what these say of themselves, now that they are loaded.

    Each comes with its name and version, and with its tensors where they are known. Raises StartError.
    """
    own = getattr(find(package.dialect).load("detect"), "check_loaded", None)
    if own is not None:
        own(package, models)


# Settings


def settings_of(dialect: Dialect) -> type[Settings]:
    """The class of settings that packages of this dialect have."""
    own: type[Settings] = dialect.load("settings").Settings if dialect.has("settings") else Settings
    return own


def own_settings(dialect: Dialect) -> dict[str, dataclasses.Field[Any]]:
    """The settings that only packages of this dialect have, by name."""
    common = table_of(Settings)
    return {name: about for name, about in table_of(settings_of(dialect)).items() if name not in common}


def _tables(dialect: Dialect) -> tuple[str, ...]:
    return tuple(getattr(dialect.load("settings"), "TABLES", ())) if dialect.has("settings") else ()


def scope(name: str = "") -> SettingsScope:
    """The settings that packages of a dialect may have; without a name, the settings that all packages have."""
    chosen = find(name) if name else None
    mine = {*own_settings(chosen), *_tables(chosen)} if chosen else set()
    others: dict[str, list[str]] = {}
    for dialect in known().values():
        for setting in {*own_settings(dialect), *_tables(dialect)} - mine:
            others.setdefault(setting, []).append(dialect.name)
    shown = {setting: " and ".join(names) for setting, names in others.items()}
    return SettingsScope(settings_of(chosen) if chosen else Settings, name, _tables(chosen) if chosen else (), shown)


def resolve(
    package: Package, flags: Mapping[str, Any], environ: Mapping[str, str], shared: Path | None = None
) -> Resolved:
    """The settings of a package. `shared` is a file for several packages; the package's own file wins over it.

    Raises StartError.
    """
    return resolving.resolve(flags, environ, package.config, package.defaults, scope(package.dialect), shared)


# What else a dialect does


def contract(package: Package, settings: Settings) -> Contract:
    """The contract of a package's platform, checked. Raises StartError."""
    from panglot.web.contract_check import problems

    dialect = find(package.dialect)
    chosen: Contract = dialect.load("contract").contract(package, settings)
    wrong = list(problems(chosen))
    if wrong:
        raise dialect.unusable("contract.py: " + "; ".join(wrong))
    return chosen


def run_to_its_end(package: Package, settings: Settings) -> int:
    """Run a package that serves nothing; its exit code."""
    code: int = find(package.dialect).load("alone").run(package, settings)
    return code


def looks_for() -> str:
    """For the message about a folder that is no package: a row for each dialect, with the files it looks for."""
    wide = max(map(len, known()))
    texts = {name: str(dialect.load("detect").LOOKS_FOR) for name, dialect in known().items()}
    under = " " * (wide + 4)
    rows = (textwrap.fill(f"  {name:{wide}}  {text}", 78, subsequent_indent=under) for name, text in texts.items())
    return "\n".join(rows)


def folders_of_packages(folder: Path) -> list[str]:
    """The names of the folders in it that hold packages, or versions of one; for the message about one without any."""
    others = [dialect for dialect in known().values() if dialect.name != fallback().name]
    names = []
    models = ModelFolder(folder)
    for name in itertools.islice(models.names(), MOST_LOOKED_INTO):
        # A package that cannot be served or read is no reason to say nothing of the others.
        with contextlib.suppress(StartError, OSError):
            paths = [folder / name, *(version.path for version in models.versions(name))]
            if any((path / "model.py").is_file() or _recognised(others, path, {}) for path in paths):
                names.append(name)
    return names
