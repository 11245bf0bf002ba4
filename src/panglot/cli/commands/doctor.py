"""`panglot doctor`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.options import Grouped, parse_flags, setting_options
from panglot.terminal import printing
from panglot.terminal.text import counted

if TYPE_CHECKING:
    from panglot.tools.doctor.examining import Report
    from panglot.tools.doctor.finding import Finding

COLOURS = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@click.command(cls=Grouped)
@click.argument("path", required=False)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@lambda function: setting_options(function, shown=())
def doctor(path: str | None, as_json: bool, **given: Any) -> None:
    """Look at the machine and the interpreter; with PATH also at a package, which is served and sent one request.

    Takes the options of `panglot serve`. The exit code is 3 when a problem prevents serving.
    """
    from rich.console import Console

    from panglot.tools.doctor.examining import examine

    flags = parse_flags(given)
    typed = {name: value for name, value in given.items() if value is not None}
    with Console(stderr=True).status("looking at Panglot") as status:
        report = examine(path, flags, typed, status.update)
    if as_json:
        click.echo(json.dumps(report.as_dict(), indent=2))
    else:
        show(report)
    if report.problems:
        sys.exit(3)


def show(report: Report) -> None:
    """Print the findings by section, for people."""
    from rich.table import Table

    console = printing.console(highlight=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for overflow in (None, None, "fold"):
        table.add_column(no_wrap=overflow is None, overflow="fold")
    section = ""
    for finding in report.findings:
        if finding.section != section:
            section = finding.section
            table.add_row("", f"[bold]{section}[/bold]")
        add(table, finding)
    console.print(table)
    if report.log:
        console.print("\n[bold]log of the self-test[/bold]")
        for line in report.log:
            click.echo(f"  {line}")
    console.print(f"\n{summary(report)}")


def add(table: Any, finding: Finding) -> None:
    """Add a row for a finding, with its fix in the next line."""
    from rich.text import Text

    from panglot.terminal.text import visible

    shown = Text(visible(finding.value))
    if finding.fix:
        shown.append(f"\nfix: {visible(finding.fix)}", "bold")
    table.add_row(Text(finding.state, COLOURS[finding.state]), Text(finding.name), shown)


def summary(report: Report) -> str:
    warnings = counted(report.warnings, "warning")
    if report.problems:
        return f"[bold red]{counted(report.problems, 'problem')}[/bold red], {warnings}"
    return f"[green]no problem[/green], {warnings}" if report.warnings else "[green]all well[/green]"
