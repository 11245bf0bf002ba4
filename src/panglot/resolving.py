"""From flags, variables, `panglot.toml` and the dialect to one set of settings, or one line that says what is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panglot import pools, units, variables
from panglot.errors import StartError
from panglot.settings import FIELDS, OF_DIALECTS, Settings, flag, suggestion, variable


@dataclass(frozen=True)
class Resolved:
    """The settings in force, where each came from, and what was given but is none, in sentences."""

    settings: Settings
    sources: dict[str, str]
    warnings: tuple[str, ...] = ()


def read_toml(path: Path) -> dict[str, Any]:
    """The keys of a `panglot.toml`. Raises StartError naming file, line and key."""
    text = path.read_text(encoding="utf-8")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = getattr(error, "lineno", 0) or _line_in(str(error))
        raise StartError(f"not valid TOML: {error}", file=str(path), line=line) from None
    table = {key: value for key, value in table.items() if key not in OF_DIALECTS}
    for key in table:
        if key not in FIELDS:
            line = _line_of(text, key)
            raise StartError(f"unknown key '{key}'", file=str(path), line=line, fix=suggestion(key, FIELDS))
    return {key: _typed(key, value, str(path), _line_of(text, key)) for key, value in table.items()}


def _line_in(message: str) -> int:
    _, _, rest = message.partition("at line ")
    digits = rest.split(",")[0].strip(" )")
    return int(digits) if digits.isdigit() else 0


def _line_of(text: str, key: str) -> int:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().strip("[").startswith((key, f'"{key}"')):
            return number
    return 0


def _typed(name: str, value: Any, file: str, line: int) -> Any:
    """A TOML value in the setting's own type; the text form of every kind is accepted too."""
    kind = FIELDS[name].metadata["kind"]
    try:
        if isinstance(value, bool):
            if kind != "bool":
                raise ValueError(f"expected {_expected(kind)}, not true or false")
            return value
        if isinstance(value, str):
            if kind == "folder" and value:
                # From where it is written, not from where the server is started.
                value = str(Path(file).parent / Path(value).expanduser())
            return check(name, units.PARSERS[kind](value))
        if isinstance(value, int | float) and kind in ("int", "float", "seconds", "size"):
            if kind in ("int", "size") and value != int(value):
                raise ValueError("expected a whole number")
            return check(name, int(value) if kind in ("int", "size") else float(value))
        if isinstance(value, dict) and kind == "pools":
            return pools.from_table(value)
        if isinstance(value, list) and kind in ("words", "hosts"):
            return units.PARSERS[kind](",".join(str(word) for word in value))
        raise ValueError(f"expected {_expected(kind)}")
    except ValueError as error:
        raise StartError(f"{name} = {value!r}: {error}", file=file, line=line) from None


def _expected(kind: str) -> str:
    return {
        "int": "a whole number",
        "float": "a number",
        "seconds": "a duration",
        "size": "a size",
        "bool": "true or false",
        "words": "a list of words",
        "hosts": "a list of hosts",
        "str": "text",
        "folder": "the path of a folder",
        "pools": "a table such as { preprocess = 4 }",
    }[kind]


def check(name: str, value: Any) -> Any:
    """The value, if it is in range. Raises ValueError."""
    about = FIELDS[name].metadata
    if about["choices"] and value not in about["choices"]:
        raise ValueError(f"expected one of {', '.join(about['choices'])}")
    if about["least"] is not None and value < about["least"]:
        raise ValueError(f"must be at least {about['least']:g}")
    if about["most"] is not None and value > about["most"]:
        raise ValueError(f"must be at most {about['most']:g}")
    return value


def parse(name: str, text: str, where: str) -> Any:
    try:
        return check(name, units.PARSERS[FIELDS[name].metadata["kind"]](text))
    except ValueError as error:
        raise StartError(f"{where} {text!r}: {error}") from None


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings that variables give. Raises StartError for a value that is none."""
    return {name: parse(name, text, key) for name, key, text in variables.given(environ) if name in FIELDS}


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    file: Path | None = None,
    dialect: Mapping[str, Any] | None = None,
) -> Resolved:
    """Put the layers together, the strongest last."""
    layers: list[tuple[str, Mapping[str, Any]]] = [("the dialect", dialect or {})]
    if file is not None:
        layers.append((file.name, read_toml(file)))
    layers.append(("environment", from_environment(environ)))
    layers.append(("flag", flags))
    values: dict[str, Any] = {}
    sources = dict.fromkeys(FIELDS, "default")
    for source, layer in layers:
        for name, value in layer.items():
            values[name] = value
            sources[name] = variable(name) if source == "environment" else flag(name) if source == "flag" else source
    return Resolved(Settings(**values), sources, variables.unknown(environ))
