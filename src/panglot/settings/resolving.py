"""From flags, variables, `panglot.toml` and the dialect to one set of settings, or one line that says what is wrong."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.settings import counts, devices, pools, tomlfile, units, variables
from panglot.settings.all_settings import Settings, former_names, table_of
from panglot.settings.names import flag, suggestion, variable
from panglot.terminal.text import brief

LISTS = ("words", "hosts", "origins")
"""Kinds of settings with several texts."""
IN_RAY = {
    "address": "ray", "worker_resources": "worker_resources", "python": "ray_python", "agent_ports": "agent_ports",
    "files": "ray_files", "tls": "ray_tls", "place": "place", "keeper_ports": "keeper_ports",
}  # fmt: skip
"""The keys of the table `[ray]` of a panglot.toml, and the settings they are."""


@dataclass(frozen=True)
class SettingsScope:
    """Which settings a package may have, and which belong to packages of other dialects."""

    settings: type[Settings] = Settings
    dialect: str = ""
    tables: tuple[str, ...] = ()
    """Tables of `panglot.toml` that the dialect reads by itself."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Settings and tables of other dialects, each with the names of its dialects."""
    lenient: bool = False
    """Whether settings of other dialects are ignored, because packages of several dialects share a file."""

    def refuse(self, name: str, shown: str, file: str = "", line: int = 0) -> None:
        """Raise StartError when a setting belongs to packages of other dialects."""
        if name in self.others:
            what = f"{shown} is for {self.others[name]} packages, and this one is {self.dialect or 'none'}"
            raise StartError(what, file=file, line=line, fix="leave it out")


@dataclass(frozen=True)
class Resolved:
    """The settings in force, and where each came from."""

    settings: Settings
    sources: dict[str, str]
    ineffective: tuple[str, ...] = ()
    """What was given but has no effect, in sentences."""
    outdated: tuple[str, ...] = ()
    """What was given under an old name, or is no longer needed, in sentences."""

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.ineffective, *self.outdated)


def read_toml(path: Path, scope: SettingsScope) -> dict[str, Any]:
    """The keys of a `panglot.toml`, old names among them. Raises StartError naming file, line and key."""
    file = tomlfile.read(path)
    table = _with_old_names(scope)
    values = {}
    for key, value in _flat(file).items():
        if key in scope.tables or (scope.lenient and key in scope.others):
            continue
        scope.refuse(key, f"'{key}'", str(path), file.line(key))
        if key not in table:
            raise file.error(f"unknown key '{key}'", key, fix=suggestion(key, table_of(scope.settings)))
        try:
            values[key] = _typed(table[key], value, path.parent)
        except ValueError as error:
            where = _where(file, key)
            raise file.error(f"{where[-1]} = {brief(repr(value), 100)}: {error}", *where) from None
    return values


def _where(file: tomlfile.TomlFile, key: str) -> tuple[str, ...]:
    """The table and the key of a setting, as the file has them."""
    inner = file.table.get("ray")
    names = [name for name, setting in IN_RAY.items() if setting == key and isinstance(inner, dict) and name in inner]
    return ("ray", names[0]) if names else (key,)


def _flat(file: tomlfile.TomlFile) -> dict[str, Any]:
    """The keys of the file, those of the table `[ray]` under the names that they have as flags. Raises StartError."""
    inner = file.table.get("ray")
    if not isinstance(inner, dict):
        return file.table
    for key in inner:
        if key not in IN_RAY:
            raise file.error(f"unknown key '{key}' in [ray]", "ray", key, fix=suggestion(key, IN_RAY))
    outer = {key: value for key, value in file.table.items() if key != "ray"}
    return {**outer, **{IN_RAY[key]: value for key, value in inner.items()}}


def _typed(about: Field[Any], value: Any, base: Path) -> Any:
    """A TOML value in the setting's own type; the text form of every kind is accepted too. Raises ValueError."""
    kind = about.metadata["kind"]
    if isinstance(value, bool):
        if kind != "bool":
            raise ValueError(f"expected {_expected(kind)}, not true or false")
        return value
    if isinstance(value, str):
        if kind == "folder" and value:
            # From where it is written, not from where the server is started.
            value = str(base / os.path.expanduser(value))
        return check(about, units.PARSERS[kind](value))
    if isinstance(value, int | float) and kind in ("int", "float", "seconds", "size"):
        return check(about, units.exact(value) if kind in ("int", "size") else units.real(value))
    if isinstance(value, int) and kind == "fronts":
        return check(about, units.fronts(str(value)))
    if kind == "workers":
        return counts.read(value)
    if isinstance(value, dict) and kind == "pools":
        return pools.from_table(value)
    if isinstance(value, dict) and kind == "amounts":
        return units.amounts_of(value)
    if isinstance(value, list) and kind in LISTS and all(isinstance(word, str) for word in value):
        return units.PARSERS[kind](",".join(value))
    raise ValueError(f"expected {_expected(kind)}")


def _expected(kind: str) -> str:
    return {
        "int": "a whole number",
        "float": "a number",
        "seconds": "a duration",
        "size": "a size",
        "bool": "true or false",
        "words": "a list of words",
        "hosts": "a list of hosts",
        "origins": "a list of origins",
        "str": "text",
        "folder": "the path of a folder",
        "amounts": "a table such as { cpu = 1, gpu = 1 }",
        "ports": 'two ports such as "20000-20099"',
        "devices": f"devices: {devices.FORMS}",
        "pools": "a table such as { preprocess = 4 }",
        "fronts": 'a whole number, or "auto"',
        "workers": 'a whole number, or text such as "1:8"',
    }[kind]


def check(about: Field[Any], value: Any) -> Any:
    """The value, if it is in the setting's range. Raises ValueError."""
    allowed = about.metadata
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("expected a finite number")
    if allowed["choices"] and value not in allowed["choices"]:
        raise ValueError(f"expected one of {', '.join(allowed['choices'])}")
    if isinstance(value, counts.WorkerCount) and value.most > counts.MOST:
        raise ValueError(f"must be at most {counts.MOST}")
    if allowed["least"] is not None and value < allowed["least"]:
        raise ValueError(f"must be at least {allowed['least']:g}")
    if allowed["most"] is not None and value > allowed["most"]:
        raise ValueError(f"must be at most {allowed['most']:g}")
    return value


def parse(about: Field[Any], text: str, where: str) -> Any:
    """The value that a flag or a variable gives a setting as text. Raises StartError."""
    try:
        return check(about, units.PARSERS[about.metadata["kind"]](text))
    except ValueError as error:
        raise StartError(f"{where} {text!r}: {error}") from None


def from_environment(environ: Mapping[str, str], scope: SettingsScope) -> dict[str, Any]:
    """The settings that variables give, by the names that they use. Raises StartError for a value that is none."""
    table = _with_old_names(scope)
    return {name: parse(table[name], text, key) for name, key, text in variables.given(environ) if name in table}


def _with_old_names(scope: SettingsScope) -> dict[str, Field[Any]]:
    table = table_of(scope.settings)
    return {**table, **{old: table[name] for old, name in former_names(scope.settings).items()}}


def _checked(values: Mapping[str, Any], scope: SettingsScope) -> Mapping[str, Any]:
    """What a package's own configuration chooses, as long as it is in range. Raises StartError."""
    table = table_of(scope.settings)
    for name in values:
        try:
            check(table[name], values[name])
        except ValueError as error:
            shown = brief(str(values[name]), 100)
            raise StartError(f"the package's configuration asks for {name} = {shown}: {error}") from None
    return values


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    file: Path | None = None,
    dialect: Mapping[str, Any] | None = None,
    scope: SettingsScope | None = None,
    shared: Path | None = None,
) -> Resolved:
    """Put the layers together, the strongest last. `shared` is a file for several packages. Raises StartError."""
    scope = scope or SettingsScope()
    layers: list[tuple[str, Mapping[str, Any]]] = [("the dialect", _checked(dialect or {}, scope))]
    if shared is not None:
        layers.append((str(shared), read_toml(shared, dataclasses.replace(scope, lenient=True))))
    if file is not None:
        layers.append((file.name, read_toml(file, scope)))
    layers.append(("environment", from_environment(environ, scope)))
    layers.append(("flag", flags))
    for name in flags:
        scope.refuse(name, flag(name))
    values: dict[str, Any] = {}
    sources = dict.fromkeys(table_of(scope.settings), "default")
    former = former_names(scope.settings)
    outdated = []
    for source, layer in layers:
        for given, value in layer.items():
            name = former.get(given, given)
            if given != name:
                outdated.append(_renamed(given, name, source, layer))
            values[name] = value
            sources[name] = variable(given) if source == "environment" else flag(given) if source == "flag" else source
    others = {key: text for key, text in environ.items() if key not in map(variable, former)}
    unknown = variables.unknown(others, table_of(scope.settings), scope.others)
    outdated += _former(values, sources, scope)
    return Resolved(scope.settings(**values), sources, unknown, tuple(outdated))


def _renamed(old: str, new: str, source: str, layer: Mapping[str, Any]) -> str:
    """A warning that a setting was given under its old name. Raises StartError when the new name was given there too.

    Where two sources give the two names, the stronger source wins as always. Within one source neither is stronger.
    """
    spelt = {"environment": variable, "flag": flag}.get(source, str)
    where = "" if spelt is not str else f" in {source}"
    if new in layer:
        both = f"{spelt(old)} and {spelt(new)} are both given{where}"
        raise StartError(f"{both}: they are the old and the new name of one setting", fix=f"leave out {spelt(old)}")
    return f"{spelt(old)}{where} is now called {spelt(new)}: the old name works in this release, and not in the next"


def _former(values: Mapping[str, Any], sources: Mapping[str, str], scope: SettingsScope) -> Iterator[str]:
    """A warning for each given setting that is no longer needed. Raises StartError for a value that there was."""
    for name, about in table_of(scope.settings).items():
        now = about.metadata["former"]
        if not now or name not in values:
            continue
        given = sources[name] if sources[name] in (flag(name), variable(name)) else f"{name} in {sources[name]}"
        if values[name] != about.default:
            value = brief(str(values[name]), 100)
            raise StartError(f"{given}: '{value}' can no longer be chosen; {now}", fix="leave it out")
        yield f"{given} is no longer needed; {now}"
