"""Findings of `panglot doctor`, and the checks that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from panglot.settings import Settings

OK, WARNING, PROBLEM = "ok", "warning", "problem"
"""Fine; worth knowing, serving works all the same; serving will not work."""


@dataclass(frozen=True)
class Finding:
    """A line of `panglot doctor`. `fix` is what to type or change, empty where nothing needs to be done."""

    section: str
    name: str
    value: str
    state: str = OK
    fix: str = ""
    place: str = ""
    """File and line of the script that it is about, where it is about one."""


class CheckResult(NamedTuple):
    """What a check says: the rest of a finding."""

    value: str
    state: str = OK
    fix: str = ""


class Check(NamedTuple):
    """A line of `panglot doctor`, and the function that finds out what it says."""

    section: str
    name: str
    look: Callable[[Settings], CheckResult | None]
    """None where there is nothing to say."""


def run(checks: Iterable[Check], settings: Settings) -> list[Finding]:
    """The findings of some checks, in their order."""
    results = ((check, check.look(settings)) for check in checks)
    return [Finding(check.section, check.name, *result) for check, result in results if result is not None]
