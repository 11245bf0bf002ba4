"""Findings of `panglot doctor`, and the checks that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from panglot.settings import Settings

OK, WARNING, PROBLEM = "ok", "warning", "problem"
"""States of a finding. With a warning, serving works nevertheless; with a problem it does not."""


@dataclass(frozen=True)
class Finding:
    """A line of `panglot doctor`. `fix` says what to type or to change; empty: nothing."""

    section: str
    name: str
    value: str
    state: str = OK
    fix: str = ""
    place: str = ""
    """File and line of the script, for a finding about a line of it."""


class CheckResult(NamedTuple):
    """The result of a check: the rest of a finding."""

    value: str
    state: str = OK
    fix: str = ""


class Check(NamedTuple):
    """A line of `panglot doctor`, and the function that makes it."""

    section: str
    name: str
    look: Callable[[Settings], CheckResult | None]
    """Returns None where there is nothing to say."""


def run(checks: Iterable[Check], settings: Settings) -> list[Finding]:
    """The findings of some checks, in their order."""
    results = ((check, check.look(settings)) for check in checks)
    return [Finding(check.section, check.name, *result) for check, result in results if result is not None]
