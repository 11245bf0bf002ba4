"""The options of mosec's server, as flags or as MOSEC_* variables, translated to Panglot's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from panglot.errors import StartError
from panglot.settings import Settings, suggestion, table_of, units
from panglot.settings.resolving import check
from panglot.settings.variables import is_of_kubernetes

NAMESPACE = "mosec_service"
PREFIX = "MOSEC_"
NO_EFFECT = {
    "path": "no sockets are made there",
    "compression": "answers are not compressed; a proxy can do that",
}
SWITCHES = ("debug", "dry_run", "compression")


@dataclass
class Chosen:
    """The values of the options: settings of Panglot, options without a setting, and notes for the user."""

    settings: dict[str, Any] = field(default_factory=dict)
    namespace: str = ""
    dry_run: bool = False
    notes: list[str] = field(default_factory=list)


def _milliseconds(text: str) -> dict[str, Any]:
    if not text.strip().isdigit() or not int(text):
        raise ValueError("expected milliseconds, such as 30000")
    return {"timeout": int(text) / 1000}


def _bytes(text: str) -> dict[str, Any]:
    size = units.size(text)
    return {"max_body": size, "max_json": max(1, size)}


SETTINGS: dict[str, Callable[[str], dict[str, Any]]] = {
    "capacity": lambda text: {"queue": units.whole(text)},
    "timeout": _milliseconds,
    "wait": lambda text: {"max_wait_ms": units.number(text)},
    "address": lambda text: {"host": text},
    "port": lambda text: {"port": units.whole(text)},
    "debug": lambda text: {"log_level": "debug"} if units.switch(text) else {},
    "log_level": lambda text: {"log_level": text},
    "max_request_size": _bytes,
}
"""Functions from the value of an option to settings of Panglot. Each raises ValueError."""

NAMES = (*SETTINGS, *NO_EFFECT, "namespace", "dry_run")


def read(given: Mapping[str, str], wording: Callable[[str], str]) -> Chosen:
    """Read options by name. `wording` gives the form in which each was written. Raises StartError for a wrong value."""
    chosen = Chosen()
    for name, text in given.items():
        try:
            _take(name, text, wording(name), chosen)
        except ValueError as error:
            raise StartError(f"{wording(name)} {text!r}: {error}") from None
    return chosen


def _take(name: str, text: str, written: str, chosen: Chosen) -> None:
    if name in NO_EFFECT:
        if name not in SWITCHES or units.switch(text):
            chosen.notes.append(f"{written} has no effect here: {NO_EFFECT[name]}")
    elif name == "namespace":
        if not text.isidentifier():
            raise ValueError("expected letters, digits and _")
        chosen.namespace = text
    elif name == "dry_run":
        chosen.dry_run = units.switch(text)
    else:
        table = table_of(Settings)
        chosen.settings |= {setting: check(table[setting], value) for setting, value in SETTINGS[name](text).items()}


def read_variables(environ: Mapping[str, str]) -> Chosen:
    """The options in MOSEC_* variables; an unknown one is noted. Raises StartError for an invalid value."""
    given, notes = {}, []
    for key, text in environ.items():
        # Kubernetes sets MOSEC_PORT and others for a Service with the name mosec: they are no options.
        if not key.startswith(PREFIX) or not text or is_of_kubernetes(key, text):
            continue
        name = key.removeprefix(PREFIX).lower()
        if name in NAMES:
            given[name] = text
        else:
            hint = suggestion(key, [PREFIX + known.upper() for known in NAMES])
            notes.append(f"{key} is not known and has no effect" + (f": {hint}" if hint else ""))
    chosen = read(given, lambda name: PREFIX + name.upper())
    chosen.notes += notes
    if chosen.dry_run:
        chosen.notes.append(f"{PREFIX}DRY_RUN has an effect with `panglot tiinfer` alone")
    return chosen
