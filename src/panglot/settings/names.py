"""The names of a setting: as a flag, as a variable, and as somebody may have meant it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return "PANGLOT_" + name.upper()


def suggestion(word: str, known: Iterable[str]) -> str:
    """A question for the name that is nearest to a word; empty where none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""
