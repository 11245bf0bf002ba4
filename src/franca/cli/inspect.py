"""`franca inspect`."""

from __future__ import annotations

import json
from typing import Any

import click

from franca.cli.options import Grouped, resolve_package, setting_options
from franca.discovery import Package
from franca.settings import Resolved
from franca.web import native


@click.command(cls=Grouped)
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@setting_options
def inspect(path: str, as_json: bool, **given: Any) -> None:
    """Explain what PATH is, why, and every setting with its source. Runs nothing of it."""
    package, resolved = resolve_package(path, given)
    facts = gather(package, resolved)
    if as_json:
        click.echo(json.dumps(facts, indent=2, default=str))
    else:
        show(facts)


def gather(package: Package, resolved: Resolved) -> dict[str, Any]:
    contract = native.find(package, resolved.settings)
    values = vars(resolved.settings)
    return {
        "package": package.name,
        "folder": str(package.folder),
        "script": str(package.script),
        "dialect": package.dialect,
        "entry": package.entry,
        "why": list(package.reasons),
        "routes": [f"POST {route.path}" for route in contract.routes]
        + [f"GET {page.path} ({page.access})" for page in contract.pages],
        "config": str(package.config) if package.config else None,
        "problems": list(package.problems),
        "settings": {name: {"value": values[name], "source": resolved.sources[name]} for name in values},
    }


def show(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    top = Table.grid(padding=(0, 2))
    for name in ("package", "dialect", "entry", "script", "config"):
        if facts[name]:
            top.add_row(f"[dim]{name}[/dim]", str(facts[name]))
    for word, values in (("why", facts["why"]), ("routes", facts["routes"]), ("problems", facts["problems"])):
        for value in values:
            top.add_row(f"[dim]{word}[/dim]", value)
    console.print(top)
    table = Table(box=None, header_style="dim", padding=(0, 2))
    for heading in ("setting", "value", "source"):
        table.add_column(heading)
    for name, entry in facts["settings"].items():
        style = "" if entry["source"] == "default" else "bold"
        shown = entry["value"]
        table.add_row(name, "-" if shown in ("", ()) else str(shown), entry["source"], style=style)
    console.print(table)
