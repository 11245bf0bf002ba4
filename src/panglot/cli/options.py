"""Command-line options made from the table of settings."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

import click

from panglot import dialects
from panglot.errors import StartError
from panglot.packages.package import Package
from panglot.serving import planning
from panglot.serving.planning import ServingPlan
from panglot.settings import Settings, flag, table_of
from panglot.settings.conflicts import refuse_conflicts, refuse_useless
from panglot.settings.counts import ANY
from panglot.settings.resolving import Resolved, parse
from panglot.settings.setting import SERVER
from panglot.settings.units import show
from panglot.terminal.text import at_words, visible

WITHOUT = "settings_without_options"
"""The attribute of a callback with the names of settings that get no option."""
WORDS = "words_of_settings"
"""The attribute of a callback with its own help for settings which have another meaning there."""
SHOWN = "shown_groups"
"""The attribute of a callback with the groups of settings in its help; without it, all groups."""
COMMON = ("host", "port", "workers", "device", "python", "max_batch", "timeout", "reload", "dev", "log_level")
"""The settings that most people look for, in the order of the help."""
COMMON_HEADING = "Common settings"
RANGE = re.compile(r"\s+\[[^\[\]]*x?[<>]=?[^\[\]]*\]$")
"""The range that click adds to the help of a number with bounds."""
PER_INPUT = {"timeout": "an input that has no answer by then has failed"}
"""The help of a timeout for a command without a server."""
NEGATIVE = re.compile(r"-\d+(\.\d+)?([eE][-+]?\d+)?")
METAVARS = {
    "seconds": "TIME",
    "size": "SIZE",
    "int": "N",
    "float": "NUMBER",
    "words": "NAMES",
    "hosts": "HOSTS",
    "origins": "ORIGINS",
    "str": "TEXT",
    "pools": "NAME=N,…",
    "fronts": "N|auto",
    "workers": "N|MIN:MAX",
    "amounts": "NAME=N,…",
    "ports": "A-B",
}


class TakesInputs(click.Command):
    """A command with arguments of JSON: a negative number is an argument, not an option.

    Its help leaves out the ranges of values: they are in the error about a wrong value.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. A number is an argument, unless it follows an option that takes a value."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        with_value = {name for option in options if not option.is_flag for name in option.opts}
        pairs = zip(["", *args], args, strict=False)
        # JSON ignores a space in front of a number, and click then sees no dash.
        shielded = [
            f" {word}" if NEGATIVE.fullmatch(word) and before not in with_value else word for before, word in pairs
        ]
        return super().parse_args(ctx, shielded)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Options"):
            formatter.write_dl(list(self.help_records(ctx).values()))

    def help_records(self, ctx: click.Context) -> dict[str, tuple[str, str]]:
        """The lines of the help, by the names of their options."""
        options = {str(option.name): option for option in self.get_params(ctx) if isinstance(option, click.Option)}
        records = {name: option.get_help_record(ctx) for name, option in options.items()}
        return {name: (record[0], RANGE.sub("", record[1])) for name, record in records.items() if record is not None}


class Grouped(TakesInputs):
    """A command with options for settings. Its help lists them by group, and a dialect's options under its name.

    The options are made when the command is used, because they depend on the installed dialects.
    """

    @functools.cached_property
    def setting_options(self) -> list[click.Parameter]:
        """One option per setting, if the callback wants them: see `setting_options` below."""
        without = getattr(self.callback, WITHOUT, None)
        words = getattr(self.callback, WORDS, {})
        if without is None:
            return []
        # The command's own options win: a platform's command may have one with the name of another dialect's setting.
        own = {parameter.name for parameter in self.params}
        settings = {name: about for name, about in all_settings().items() if name not in without and name not in own}
        renamed = [about for about in settings.values() if about.metadata["formerly"]]
        return [
            *(_option(name, about, words.get(name)) for name, about in settings.items()),
            *(_option(about.metadata["formerly"], about, hidden=True) for about in renamed),
        ]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        return [*own[: len(self.params)], *self.setting_options, *own[len(self.params) :]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections: those of all packages by group, then those of each dialect."""
        groups = self._by_group(ctx)
        shown = getattr(self.callback, SHOWN, None)
        for heading, records in groups.items():
            if shown is None or heading in ("Options", COMMON_HEADING, *shown):
                with formatter.section(heading):
                    formatter.write_dl(records)
        if shown is not None and len(groups) > len(shown) + 2:
            formatter.write_paragraph()
            formatter.write_text("Other settings of panglot serve that apply here work too: see panglot serve --help.")

    def _by_group(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """The lines of help under their headings: the command's own options, common settings, groups, dialects."""
        table = table_of(Settings)
        records = self.help_records(ctx)
        of_dialects = {name: list(dialects.own_settings(owner)) for name, owner in dialects.known().items()}
        own = {parameter.name for parameter in self.params}
        theirs = {setting for names in of_dialects.values() for setting in names} - own
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        common = [records[name] for name in COMMON if name in records and name in table]
        if common:
            groups[COMMON_HEADING] = common
        for name, record in records.items():
            if name not in theirs and not (name in COMMON and name in table):
                groups.setdefault(_heading(table.get(name)), []).append(record)
        for dialect, names in of_dialects.items():
            shown = [records[name] for name in names if name in theirs and name in records]
            if shown:
                groups[f"Packages of {dialect}"] = shown
        return groups


class OnPackage(Grouped):
    """A command that passes `arguments` to its callback: the words behind `--`, for the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Taken off before click sees them: it would mix the script's words with the command's own arguments.
        at = args.index("--") if "--" in args else len(args)
        ctx.params["arguments"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS OF THE SCRIPT]"]


def _heading(about: Field[Any] | None) -> str:
    """The heading of an option in the help: the group of its setting, and its scope, the server or each model."""
    if about is None:
        return "Options"
    scope = "the whole server" if about.metadata["scope"] == SERVER else "each model"
    return f"{about.metadata['group']}, {scope}"


def all_settings() -> dict[str, Field[Any]]:
    """Every setting, also the settings of all dialects."""
    table = table_of(Settings)
    for dialect in dialects.known().values():
        table |= {name: about for name, about in dialects.own_settings(dialect).items() if name not in table}
    return table


def setting_options(
    function: Callable[..., Any], without: Collection[str] = (), shown: Collection[str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Give a command of the class `Grouped` an option for each setting, but for the settings `without`.

    Its help shows the common options and the groups `shown`; None: all groups. `words` has its own help for settings
    which have another meaning there.
    """
    setattr(function, WITHOUT, frozenset(without))
    setattr(function, WORDS, words or {})
    if shown is not None:
        setattr(function, SHOWN, tuple(shown))
    return function


def of_groups(*groups: str) -> tuple[str, ...]:
    """The names of all settings of these groups."""
    return tuple(name for name, about in table_of(Settings).items() if about.metadata["group"] in groups)


def _option(name: str, about: Field[Any], words: str | None = None, hidden: bool = False) -> click.Option:
    column = about.metadata
    hidden = hidden or bool(column["former"])
    if column["kind"] == "bool":
        # None as the default: a switch that is not on the command line must not win over a file or a variable.
        words = f"{flag(name)}/--no-{name.replace('_', '-')}" if about.default else flag(name)
        return click.Option([words, name], is_flag=True, default=None, help=column["help"], hidden=hidden)
    metavar = column["metavar"] or ("|".join(column["choices"]) if column["choices"] else METAVARS[column["kind"]])
    several = column["kind"] in ("words", "hosts", "origins")
    return click.Option(
        [*filter(None, (column["short"], flag(name))), name],
        metavar=metavar,
        help=(words or column["help"]) + _default(about.default, column["kind"]),
        multiple=several,
        callback=_joined if several else None,
        hidden=hidden,
    )


def _joined(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str | None:
    """An option given several times is one list."""
    return ",".join(value) or None


def _default(value: Any, kind: str) -> str:
    """The default in brackets, with its unit. Empty values have none: there the help tells the default, if need be."""
    return "" if value in ("", (), 0, 0.0, ANY, MISSING) else " " + f"[{show(value, kind)}]".replace(" ", "\u00a0")


def parse_flags(given: dict[str, Any]) -> dict[str, Any]:
    """The settings given on the command line, in their own types, old names among them. Raises StartError."""
    table = all_settings()
    table |= {about.metadata["formerly"]: about for about in table.values() if about.metadata["formerly"]}
    flags = {
        name: parse(table[name], value, flag(name)) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }
    refuse_conflicts(flags)
    return flags


def resolve_package(path: str, given: dict[str, Any], arguments: tuple[str, ...] = ()) -> tuple[Package, Resolved]:
    """The package at a path, with arguments for its script, and its settings. Raises StartError."""
    flags = parse_flags(given)
    package, resolved = planning.package_at(Path(path), flags, os.environ, arguments)
    if resolved.settings.python and not resolved.settings.ray:
        check_interpreter(resolved.settings.python)
    return package, resolved


def plan_server(words: Sequence[str], given: dict[str, Any], arguments: tuple[str, ...] = ()) -> ServingPlan:
    """The plan of a server: one package alone, or several models. Raises StartError."""
    flags = parse_flags(given)
    planner = planning.Planner(flags, os.environ)
    # A name with = in it may be a path. Else it is NAME=PATH, a model among several.
    if len(words) == 1 and planner.folder is None and ("=" not in words[0] or Path(words[0]).exists()):
        package, resolved = resolve_package(words[0], given, arguments)
        refuse_useless(flags, [resolved.settings], are_several=False)
        return planning.alone(package, resolved.settings, resolved.warnings)
    if arguments:
        raise StartError("arguments for a script can be given to one package only", fix="serve it alone")
    if not words and planner.folder is None:
        raise click.UsageError("Missing argument 'PATH' (fix: name a package, or --models DIR)")
    plan = planner.server_plan(words)
    refuse_useless(flags, [plan.settings, *(model.settings for model in plan.models)], are_several=True)
    for python in {model.settings.python for model in plan.models if model.settings.python and not model.settings.ray}:
        check_interpreter(python)
    return plan


def chosen_form(form: str | None, as_json: bool) -> str | None:
    """The value of --format. --json stands for one of its values."""
    if as_json and form not in (None, "jsonl"):
        raise click.UsageError(f"--json and --format {form} do not go together")
    return "jsonl" if as_json else form


def warn(warnings: Iterable[str]) -> None:
    """Print them on stderr, for a command without a log."""
    for warning in warnings:
        whole = at_words(visible(f"warning: {warning}"), sys.stderr)
        click.echo(click.style("warning: ", fg="yellow") + whole.removeprefix("warning: "), err=True)


def warned(package: Package, resolved: Resolved, *notes: str) -> Package:
    """The package with further problems: settings without an effect, and notes."""
    return dataclasses.replace(package, problems=(*package.problems, *resolved.warnings, *notes))


def at_platform_address(resolved: Resolved, environ: Mapping[str, str], host: str) -> tuple[Settings, tuple[str, ...]]:
    """The settings with the platform's address, if there is a token or the user wants none; else a note about it.

    An address that was given stays.
    """
    settings = resolved.settings
    if resolved.sources["host"] != "default":
        return settings, ()
    if environ.get("PANGLOT_TOKEN", "").strip() or settings.token_file or settings.no_auth:
        return dataclasses.replace(settings, host=host), ()
    note = (
        f"listening on {settings.host} only: set PANGLOT_TOKEN, or PANGLOT_NO_AUTH=1, "
        f"to listen on the platform's {host}"
    )
    return settings, (note,)


def check_interpreter(python: str) -> None:
    """Refuse an interpreter that no worker can run on."""
    import subprocess

    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    fix = "name an executable such as /path/to/venv/bin/python"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = getattr(error, "strerror", "") or "it did not answer"
        raise StartError(f"--python {python} is no Python interpreter: {why}", fix=fix) from None
    try:
        version = tuple(int(number) for number in done.stdout.strip().split("."))
    except ValueError:
        raise StartError(f"--python {python} is no Python interpreter", fix=fix) from None
    if version < (3, 8):
        raise StartError(f"--python {python} is Python {done.stdout.strip()}; workers need 3.8 or newer")
