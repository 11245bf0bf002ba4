"""One thing that was looked at, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

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
