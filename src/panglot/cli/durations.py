"""Times and sizes on the command line: with a unit or without, as settings have them."""

from __future__ import annotations

from collections.abc import Callable

import click

from panglot.settings import units


def duration(least: float = 0.0) -> Callable[[str | float], float]:
    """A parser for a time of at least so many seconds: `30`, `30s`, `500ms` or `2m`."""

    def seconds(given: str | float) -> float:
        try:
            value = units.seconds(str(given))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        if value < least:
            raise click.BadParameter(f"at least {least:g} s, please")
        return value

    return seconds


def size(least: int = 0) -> Callable[[str | int], int]:
    """A parser for a size of at least so many bytes: `1048576`, `64MiB` or `10MB`."""

    def count(given: str | int) -> int:
        try:
            value = units.size(str(given))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        if value < least:
            raise click.BadParameter(f"at least {least} bytes, please")
        return value

    return count
