"""Command-line options made from the table of settings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import click

from panglot.discovery import Package, arrange, discover
from panglot.errors import StartError
from panglot.resolving import Resolved, parse, resolve
from panglot.settings import FIELDS, flag
from panglot.text import visible

METAVARS = {
    "seconds": "TIME",
    "size": "SIZE",
    "int": "N",
    "float": "NUMBER",
    "words": "NAMES",
    "hosts": "HOSTS",
    "str": "TEXT",
    "pools": "NAME=N,…",
}


class Grouped(click.Command):
    """A command whose help shows its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                field = FIELDS.get(parameter.name or "")
                groups.setdefault(field.metadata["group"] if field else "Options", []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


class OnPackage(Grouped):
    """A command whose callback gets `arguments`: what follows `--`, which is for the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.params["arguments"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS OF THE SCRIPT]"]


def setting_options(function: Callable[..., Any], without: Collection[str] = ()) -> Callable[..., Any]:
    """Give a command one option per setting, except those it has options of its own for."""
    for name, field in reversed(FIELDS.items()):
        if name in without:
            continue
        about = field.metadata
        text = about["help"]
        if about["kind"] == "bool":
            option = click.option(
                f"{flag(name)}/--no-{name.replace('_', '-')}" if field.default else flag(name),
                name,
                default=None,
                help=text,
            )
            if not field.default:
                option = click.option(flag(name), name, is_flag=True, default=None, help=text)
        else:
            metavar = about["metavar"] or ("|".join(about["choices"]) if about["choices"] else METAVARS[about["kind"]])
            several = about["kind"] in ("words", "hosts")
            option = click.option(
                *filter(None, (about["short"], flag(name))),
                name,
                metavar=metavar,
                help=text + _default(field.default),
                multiple=several,
                callback=_joined if several else None,
            )
        function = option(function)
    return function


def _joined(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str | None:
    """An option given several times is one list."""
    return ",".join(value) or None


def _default(value: Any) -> str:
    return "" if value in ("", (), 0, 0.0, MISSING) else f" [{value:g}]" if isinstance(value, float) else f" [{value}]"


def parse_flags(given: dict[str, Any]) -> dict[str, Any]:
    """The settings given on the command line, in their own types. Raises StartError."""
    return {
        name: parse(name, value, flag(name)) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }


def resolve_package(path: str, given: dict[str, Any], arguments: tuple[str, ...] = ()) -> tuple[Package, Resolved]:
    """The package at a path, with arguments for its script, and its settings. Raises StartError."""
    flags = parse_flags(given)
    config = str(flags.get("config") or os.environ.get("PANGLOT_CONFIG", ""))
    package = discover(Path(path), str(flags.get("dialect", "")), config)
    resolved = resolve(flags, os.environ, package.config, package.defaults)
    arranged = arrange(package, resolved.settings, arguments)
    if arranged.defaults != package.defaults:
        # A file that the settings named says more than the package alone did.
        resolved = resolve(flags, os.environ, arranged.config, arranged.defaults)
    package = arranged
    if resolved.settings.python:
        check_interpreter(resolved.settings.python)
    return package, resolved


def warn(warnings: Iterable[str]) -> None:
    """Say them on stderr, for a command that keeps no log."""
    for warning in warnings:
        click.echo(click.style("warning: ", fg="yellow") + visible(warning), err=True)


def warned(package: Package, resolved: Resolved, *notes: str) -> Package:
    """The package with what was given and has no effect, and further notes, among its problems."""
    return dataclasses.replace(package, problems=(*package.problems, *resolved.warnings, *notes))


def check_interpreter(python: str) -> None:
    """Refuse what is no CPython that a worker can run on."""
    import subprocess

    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    fix = "name an executable such as /path/to/venv/bin/python"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = getattr(error, "strerror", "") or "it did not answer"
        raise StartError(f"--python {python} is no Python interpreter: {why}", fix=fix) from None
    try:
        version = tuple(int(part) for part in done.stdout.strip().split("."))
    except ValueError:
        raise StartError(f"--python {python} is no Python interpreter", fix=fix) from None
    if version < (3, 8):
        raise StartError(f"--python {python} is Python {done.stdout.strip()}; workers need 3.8 or newer")
