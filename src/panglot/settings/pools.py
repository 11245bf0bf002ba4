"""How a package is divided into pools, as `pools` in panglot.toml or `--pools` says it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from panglot.settings import counts, devices
from panglot.settings.counts import ANY, SINGLE, WorkerCount

NAMES = ("preprocess", "inference", "postprocess")
MOST = 1024


@dataclass(frozen=True)
class PoolSize:
    """The size of one pool; 0 and "" leave a field to the script and the settings of the whole package."""

    workers: WorkerCount = ANY
    max_batch: int = 0
    device: str = ""


def parse(text: str) -> dict[str, PoolSize]:
    """The pools that a text such as `preprocess=4,inference=2` names. Raises ValueError."""
    table: dict[str, Any] = {}
    for entry in text.split(","):
        name, equals, count = entry.partition("=")
        if not equals:
            raise ValueError("expected pools with their processes, such as preprocess=4,inference=2")
        table[name.strip()] = count
    return from_table(table)


def from_table(table: Mapping[str, Any]) -> dict[str, PoolSize]:
    """The `[pools]` of a panglot.toml: a number of processes, or a table of more. Raises ValueError."""
    return {_known(name, NAMES, "pool"): _size(name, value) for name, value in table.items()}


def _size(name: str, value: Any) -> PoolSize:
    if not isinstance(value, Mapping):
        value = {"workers": value}
    known: dict[str, type] = {field.name: type(field.default) for field in fields(PoolSize)}
    values: dict[str, Any] = {}
    for key, given in value.items():
        expected = known[_known(key, known, f"key of {name}")]
        values[key] = given
        if expected is WorkerCount:
            values[key] = _workers(name, given)
        elif type(given) is not expected:
            raise ValueError(f"{name}: {key} must be {'text' if expected is str else 'a whole number'}")
        elif isinstance(given, int) and not 1 <= given <= MOST:
            raise ValueError(f"{name}: {key} must be between 1 and {MOST}")
        elif key == "device":
            values[key] = devices.parse(str(given))
    return PoolSize(**values)


def _workers(name: str, given: Any) -> WorkerCount:
    """The processes of a requested pool: at least one. Raises ValueError."""
    try:
        count = counts.read(given)
    except ValueError as error:
        raise ValueError(f"{name}: workers: {error}") from None
    if not count:
        raise ValueError(f"{name}: workers must be between 1 and {MOST}")
    return count


def _known(word: str, known: Any, what: str) -> str:
    if word in known:
        return word
    near = difflib.get_close_matches(word, list(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
    raise ValueError(f"there is no {what} '{word}'; {hint}")


def show(pools: Mapping[str, PoolSize]) -> str:
    """The text that `parse` reads as these pools."""
    return ",".join(f"{name}={size.workers or SINGLE}" for name, size in pools.items())
