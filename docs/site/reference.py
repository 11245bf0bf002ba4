"""Write the pages of docs/reference that come from the code: `make docs` does, and a test holds that they are fresh."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "src")]

import facts  # noqa: E402
import python_api  # noqa: E402

from panglot import dialects  # noqa: E402
from panglot.cli.commands import COMMANDS, panglot  # noqa: E402
from panglot.cli.options import METAVARS, Grouped  # noqa: E402
from panglot.logs.lines import EXTRA  # noqa: E402
from panglot.metrics.counters import FORMER_NAMES  # noqa: E402
from panglot.packages.config_pbtxt import triton_fields  # noqa: E402
from panglot.serving import planning  # noqa: E402
from panglot.settings import Settings, flag, table_of  # noqa: E402
from panglot.settings.all_settings import SERVER  # noqa: E402
from panglot.settings.units import show  # noqa: E402
from panglot.web.app import ROUTES  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
WRITTEN = "<!-- Written from the code by `make docs`; do not edit. -->"
EXAMPLES = {"plain": "digits", "megflow": "megflow/digits"}
"""The folder of a dialect's example, where it is not called as the dialect is."""
FIELDS_FOLLOW = "<!-- what follows is written from the code by `make docs` -->"
LOG_KEYS = ("time", "level", "source", "message", *EXTRA, "traceback")
WORDS = tomllib.loads((HERE / "reference.toml").read_text())


def pages() -> dict[str, str]:
    """The pages by their names."""
    return {
        "settings.md": settings(),
        "commands.md": commands(),
        "routes.md": routes(),
        "errors.md": errors(),
        "start-errors.md": start_errors(),
        "metrics.md": metrics(),
        "events.md": events(),
        "../dialects/triton.md": config_pbtxt(),
        "python.md": page("Python API", python_api.lines()),
    }


def page(title: str, *parts: Iterable[str]) -> str:
    about = WORDS["about"][title.lower().replace(" ", "-")]
    lines = [f"# {title}", "", WRITTEN, "", *about.strip().splitlines(), ""]
    for part in parts:
        lines += [*part, ""]
    return "\n".join(lines).rstrip() + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    bodies = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *bodies]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# Settings


def settings() -> str:
    """Every setting by its group, then those of each dialect."""
    groups: dict[str, dict[str, list[Sequence[str]]]] = {}
    for name, about in table_of(Settings).items():
        if about.metadata["former"]:
            continue
        whose = "the whole server" if about.metadata["scope"] == SERVER else "each model"
        group = about.metadata["group"]
        groups.setdefault(group, {}).setdefault(f"{group}, {whose}", []).append(_setting(name, about))
    tasks = [(WORDS["tasks"][group], _links(headings)) for group, headings in groups.items()]
    sections = {heading: rows for headings in groups.values() for heading, rows in headings.items()}
    for name, dialect in _ours().items():
        own = dialects.own_settings(dialect)
        if own:
            sections[f"Packages of {name}"] = [_setting(key, about) for key, about in own.items()]
    columns = ("key", "flag", "default", "may be", "what it is")
    first = [(f"`{flag(name)}`", f"`{name}`", why) for name, why in WORDS["ten"].items()]
    ten = ["## The ten that matter", "", *table(("flag", "key", "when you need it"), first)]
    by_task = ["## By task", "", *table(("you want to", "settings"), tasks)]
    parts = [[f"## {heading}", "", *table(columns, rows)] for heading, rows in sections.items()]
    return page("Settings", ten, by_task, *parts)


def _links(headings: Iterable[str]) -> str:
    return ", ".join(f"[{heading}](#{heading.lower().replace(',', '').replace(' ', '-')})" for heading in headings)


def _setting(name: str, about: Field[Any]) -> Sequence[str]:
    column = about.metadata
    default = "by the machine" if about.default is MISSING and column["kind"] != "pools" else ""
    if about.default is not MISSING:
        default = show(about.default, column["kind"])
    return f"`{name}`", f"`{flag(name)}`", default or "-", _range(column), column["help"] + _old_name(column)


def _old_name(column: Mapping[str, Any]) -> str:
    """What the table says of a setting that was renamed."""
    return f"; formerly `{column['formerly']}`, a name that works in this release" if column["formerly"] else ""


def _range(column: Mapping[str, Any]) -> str:
    if column["choices"]:
        return ", ".join(f"`{choice}`" for choice in column["choices"] if choice)
    kind = column["kind"]
    least, most = (None if column[end] is None else show(column[end], kind) for end in ("least", "most"))
    bounds = f", {least} to {most}" if least and most else f", at least {least}" if least else ""
    return {"bool": "yes or no", "seconds": "a duration", "size": "a size", "int": "a number", "float": "a number"}.get(
        kind, column["metavar"] or METAVARS.get(kind, kind)
    ) + bounds


def _ours() -> dict[str, dialects.Dialect]:
    return {name: dialect for name, dialect in dialects.known().items() if not dialect.brought_by}


# Commands


def commands() -> str:
    """Every command with its options, but for those that are settings."""
    names = [*COMMANDS, *(name for name, dialect in _ours().items() if dialect.has("command"))]
    return page("Commands", *(_command(name) for name in names))


def _command(name: str) -> list[str]:
    command = panglot.get_command(click.Context(panglot), name)
    assert command is not None
    context = click.Context(command, info_name=f"panglot {name}")
    usage = " ".join([f"panglot {name}", *command.collect_usage_pieces(context)])
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    taken = {option.name for option in command.setting_options} if isinstance(command, Grouped) else set()
    rows = [_option(option, context) for option in command.get_params(context) if _is_own(option, taken)]
    lines = [f"## panglot {name}", "", f"`{usage}`", "", *("\n\n".join(paragraphs).split("\n")), ""]
    if rows:
        lines += [*table(("option", "what it does"), rows), ""]
    return [*lines, "It takes settings too."] if taken else lines[:-1]


def _is_own(option: click.Parameter, taken: set[str | None]) -> bool:
    return isinstance(option, click.Option) and option.name not in taken and "--help" not in option.opts


def _option(option: click.Parameter, context: click.Context) -> Sequence[str]:
    record = option.get_help_record(context)
    return (f"`{record[0]}`", record[1].replace("\u00a0", " ")) if record else ("", "")


# Routes


def routes() -> str:
    """The routes of every server, and those of each platform, seen in an example."""
    ours = sorted((page.path, method, page.access) for page in ROUTES for method in page.methods)
    who = [f"- **{access}**: {words}." for access, words in WORDS["who"].items()]
    neutral = table(
        ("route", "who may call it", "what it is"),
        [(f"`{method} {path}`", access, WORDS["routes"].get(f"{method} {path}", "")) for path, method, access in ours],
    )
    parts = [who, ["## On every server", "", *neutral]]
    for name in dialects.known():
        rows = list(_routes_of(ROOT / "examples" / EXAMPLES.get(name, name)))
        parts.append([f"## Packages of {name}", "", *table(("route", "who may call it", "what answers"), rows)])
    return page("Routes", *parts)


def _routes_of(example: Path) -> Iterator[Sequence[str]]:
    package, resolved = planning.package_at(example, {}, {})
    contract = dialects.contract(package, resolved.settings)
    for place in (contract, *(listener.contract for listener in contract.listeners)):
        for route in place.routes:
            for method in route.methods:
                yield f"`{method} {route.path}`", route.access, "the script"
        for answered in place.pages:
            for method in answered.methods:
                yield f"`{method} {answered.path}`", answered.access, "the server"


# Errors, metrics, events


def errors() -> str:
    """Every code with its statuses and the messages that stand in the source."""
    by_code: dict[str, list[facts.Failure]] = {}
    for failure in facts.failures():
        by_code.setdefault(failure.code, []).append(failure)
    rows = []
    for code, failures in by_code.items():
        statuses = sorted({failure.status for failure in failures} - {"4xx"} or {"4xx"})
        messages = sorted({failure.message for failure in failures if failure.message})
        rows.append((f"`{code}`", ", ".join(statuses), "; ".join(messages)))
    return page("Errors", table(("code", "status", "messages"), rows))


def start_errors() -> str:
    """What a start that fails may say, by whose failure it is."""
    parts: dict[str, list[Sequence[str]]] = {}
    for failure in facts.start_failures():
        parts.setdefault(failure.part, []).append((failure.problem, failure.fix))
    return page(
        "Start errors",
        *([f"## {part.capitalize()}", "", *table(("problem", "fix"), rows)] for part, rows in sorted(parts.items())),
    )


def metrics() -> str:
    """Every series of /metrics."""
    groups: dict[str, list[Sequence[str]]] = {}
    for series in facts.series():
        part = series.file.split("/")
        heading = f"Packages of {part[2]}" if part[1] == "dialects" else "Every server"
        groups.setdefault(heading, []).append((f"`{series.name}`", series.kind, series.about))
        if series.name in FORMER_NAMES:
            about = f"the same as `{series.name}`, under its former name; it goes with the next release"
            groups[heading].append((f"`{FORMER_NAMES[series.name]}`", series.kind, about))
    parts = [
        [f"## {heading}", "", *table(("series", "kind", "what it counts"), rows)]
        for heading, rows in sorted(groups.items())
    ]
    return page("Metrics", *parts)


def events() -> str:
    """Server-sent events, events of workers, and the keys of lines of the log."""
    sent = [(f"`{name}`", *WORDS["sent"][name]) for name in facts.sent_events()]
    workers = [(f"`{name}`", WORDS["workers"][name]) for name in facts.worker_events()]
    return page(
        "Events",
        ["## Server-sent events", "", *table(("event", "where", "when"), sent)],
        ["## Lines of the log", "", WORDS["about"]["log"] + " " + ", ".join(f"`{key}`" for key in LOG_KEYS) + "."],
        ["## What workers tell the front", "", *table(("type", "what it means"), workers)],
    )  # fmt: skip


# Fields of config.pbtxt


def config_pbtxt() -> str:
    """The page of Triton's dialect, with every field of config.pbtxt at its end."""
    written_by_hand, marker, _ = (FOLDER / "../dialects/triton.md").read_text().partition(FIELDS_FOLLOW)
    rows = [
        (f"`{field.path}`", field.state, "yes" if field.files else "-", field.about)
        for field in triton_fields.FIELDS.values()
    ]
    lines = table(("field", "for a script", "for a model file", "what it does here"), rows)
    return "\n".join([written_by_hand + marker, "", *lines, ""])


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
