"""Printing to a terminal, or to a file instead."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED = 1_000_000
"""The width of a file or a pipe: lines in them are never broken."""


def console(target: TextIO | None = None, *, highlight: bool = False) -> Console:
    """A console on standard output, or on another file. Only on a terminal are lines broken, at its edge."""
    from rich.console import Console

    target = target or sys.stdout
    return Console(file=target, highlight=highlight, width=None if target.isatty() else UNBOUNDED)
