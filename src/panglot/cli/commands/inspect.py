"""`panglot inspect`."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from panglot import dialects, inputs
from panglot.cli.options import OnPackage, all_settings, plan_server, resolve_package, setting_options, warned
from panglot.engine.pools.pipeline import divided
from panglot.errors import near
from panglot.inputs import curl_line
from panglot.packages.package import Package
from panglot.packages.requirements import commands
from panglot.packages.signature import signature
from panglot.serving.planning import ModelPlan, ServingPlan
from panglot.settings import Settings, pools, table_of, units
from panglot.settings.counts import SINGLE
from panglot.settings.loopback import UNIX
from panglot.settings.resolving import Resolved
from panglot.terminal import printing, tables
from panglot.terminal.tables import Column
from panglot.terminal.text import visible

LINES = ("inputs", "returns", "routes", "pools", "install", "fixed_paths", "problems")
"""Facts that are lists, in the order in which they are shown."""


@click.command(cls=OnPackage)
@click.argument("path", nargs=-1, metavar="PATH | NAME=PATH...")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.option("--all", "show_all", is_flag=True, help="show every setting, not only those that differ from the default")
@lambda function: setting_options(function, shown=())
def inspect(path: tuple[str, ...], as_json: bool, show_all: bool, arguments: tuple[str, ...], **given: Any) -> None:
    """Explain what the package at PATH is, why, and how it would be served. No code of the package runs."""
    plan = plan_server(path, given, arguments)
    if plan.planner is not None:
        show_models(plan, as_json)
        return
    package, resolved = resolve_package(path[0], given, arguments)
    facts = gather(warned(package, resolved), resolved)
    if as_json:
        click.echo(json.dumps(facts, indent=2, default=str))
    else:
        show(facts, show_all, package)


def show_models(plan: ServingPlan, as_json: bool) -> None:
    """Print the models of a server, one after the other."""
    facts = [_model_facts(plan, model) for model in plan.models]
    facts += [{"model": name, "problems": [error.sentence()]} for name, error in plan.failed.items()]
    if as_json:
        click.echo(json.dumps({"models": facts, "default": plan.default, "problems": list(plan.warnings)}, indent=2))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", padding=(0, 2))
    for heading in ("model", "version", "dialect", "workers", "path", "problems"):
        table.add_column(heading)
    for entry in facts:
        problems = Text(visible("\n".join(entry["problems"]), "\n"))
        columns = ("model", "version", "dialect", "workers", "folder")
        shown = {**entry, "folder": entry.get("archive") or entry.get("folder", "-")}
        table.add_row(*(Text(visible(near(str(shown.get(name, "-"))))) for name in columns), problems)
    printing.console(highlight=True).print(table)


def _model_facts(plan: ServingPlan, model: ModelPlan) -> dict[str, Any]:
    contract = dialects.contract(model.package, model.settings)
    start = f"/models/{model.name}"
    return {
        "model": model.name,
        "version": model.version,
        "default": model.name == plan.default,
        "dialect": model.package.dialect,
        "workers": (model.settings.workers or SINGLE).plain,
        "folder": str(model.package.folder),
        "archive": str(model.package.archive) if model.package.archive else None,
        "why": list(model.package.reasons),
        "routes": [f"{method} {start}{route.path}" for route in contract.routes for method in route.methods],
        "problems": list(model.package.problems),
    }


def gather(package: Package, resolved: Resolved) -> dict[str, Any]:
    """All facts about the package, as JSON shows them."""
    contract = dialects.contract(package, resolved.settings)
    dialect = dialects.find(package.dialect)
    values = vars(resolved.settings) | {
        "pools": pools.show(resolved.settings.pools),
        "workers": resolved.settings.workers.plain,
    }
    row = divided(resolved.settings.pools)
    signed = signature(package)
    return {
        "package": package.name,
        "folder": str(package.folder),
        "archive": str(package.archive) if package.archive else None,
        "script": str(package.script),
        "dialect": package.dialect,
        "about": dialect.about,
        "docs": str(dialect.docs) if dialect.docs else None,
        "entry": package.entry,
        "docstring": signed.docstring,
        "why": list(package.reasons),
        "inputs": [str(entry) for entry in signed.inputs],
        "returns": [signed.returns] if signed.returns else [],
        "routes": [f"{method} {route.path}" for route in contract.routes for method in route.methods]
        + [f"{method} {page.path} ({page.access})" for page in contract.pages for method in page.methods],
        "pools": [f"{plan.name} x {plan.workers or SINGLE}: {', '.join(plan.stages)}" for plan in row if plan.name],
        "config": str(package.config) if package.config else None,
        "facts": {name: list(lines) for name, lines in package.facts.items()},
        "install": [shlex.join(["pip", "install", *words]) for words in commands(package)],
        "fixed_paths": [f"{path.file}:{path.line}: {path.text}" for path in package.fixed_paths],
        "problems": list(package.problems),
        "try": _curl_line(package, resolved, contract.routes[0].sample(package.name)) if contract.routes else "",
        "serves_with": effective(resolved.settings),
        "settings": {
            name: {"value": values[name], "source": resolved.sources[name], "scope": about.metadata["scope"]}
            for name, about in table_of(type(resolved.settings)).items()
            if not about.metadata["former"]
        },
    }


def _curl_line(package: Package, resolved: Resolved, path: str) -> str:
    """The line of curl that sends a request; empty where only running the script would tell one."""
    settings = resolved.settings
    base = f"{'https' if settings.tls_cert else 'http'}://{settings.host}:{settings.port}"
    base = settings.host if settings.host.startswith(UNIX) else base
    return curl_line.curl_line(base, inputs.about_package(package, path), package.folder)


def effective(settings: Settings) -> dict[str, str]:
    """The values in force of some settings, in words: above all of settings without a fixed default."""
    host = settings.host
    address = host if host.startswith(UNIX) else f"{host}:{settings.port}"
    facts = {
        "address": address,
        "workers": pools.show(settings.pools) or str(settings.workers or SINGLE),
        "device": settings.device or "what the script chooses",
        "python": settings.python or "the one Panglot runs in",
        "timeout": units.show_seconds(settings.timeout),
        "run timeout": units.show_seconds(settings.effective_run_timeout),
        "largest body": units.show_size(settings.max_body),
    }
    if settings.max_wait_ms:
        facts["batches wait"] = f"{settings.max_wait_ms:g} ms"
    return facts


def show(facts: dict[str, Any], show_all: bool, package: Package) -> None:
    """Print the facts as a table, for people."""
    from rich.table import Table
    from rich.text import Text

    console = printing.console(highlight=True)
    top = Table.grid(padding=(0, 2))
    top.add_column(no_wrap=True)
    top.add_column(overflow="fold")
    for name in ("package", "dialect", "about", "docs", "entry", "docstring", "script", "config"):
        if facts[name]:
            top.add_row(f"[dim]{name}[/dim]", Text(visible(near(package.in_archive(str(facts[name]))), "\n")))
    # A fact of the dialect may have the name of one of these lines. It is shown where the line itself is empty.
    lines = {"why": facts["why"], **facts["facts"]} | {name: facts[name] for name in LINES if facts[name]}
    lines |= {word: [value] for word, value in facts["serves_with"].items()}
    for word, values in lines.items():
        for number, value in enumerate(values):
            heading = Text("" if number else visible(word.replace("_", " ")), "dim")
            top.add_row(heading, Text(visible(near(package.in_archive(str(value))), "\n")))
    console.print(top)
    if facts["try"]:
        # Not broken into lines, so that it can be copied.
        console.print(Text(f"\ntry: {visible(facts['try'])}"), soft_wrap=True)
    _show_settings(console, facts["settings"], show_all)


def _show_settings(console: Any, settings: dict[str, Any], show_all: bool) -> None:
    """Print the settings that differ from their defaults, or all settings."""
    from rich.text import Text

    given = {name: entry for name, entry in settings.items() if show_all or entry["source"] != "default"}
    columns = (Column("setting"), Column("value", least=20), Column("source", least=12), Column("for"))
    table = all_settings()
    shown = {name: units.show(entry["value"], table[name].metadata["kind"]) for name, entry in given.items()}
    rows = [
        [Text(name), Text(visible(shown[name])), Text(visible(entry["source"])), Text(entry["scope"])]
        for name, entry in given.items()
    ]
    console.print()
    if rows:
        tables.show(console, columns, rows)
    if not show_all:
        left = len(settings) - len(given)
        console.print(f"[dim]{left} settings are at their defaults; --all shows them[/dim]")
