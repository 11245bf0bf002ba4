"""`panglot run`."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from panglot.cli.options import PER_INPUT, OnPackage, chosen_form, of_groups, resolve_package, setting_options, warn
from panglot.settings.setting import ACCESS, HTTP, RECORDING
from panglot.terminal.text import counted

if TYPE_CHECKING:
    from panglot.packages.package import Package
    from panglot.settings import Settings
    from panglot.tools.run.inputs import Input
    from panglot.tools.run.running import RunPlan, RunResult

OWN = ("host", "port", "inline", "reload", "dev")
"""Settings that mean nothing without a server."""


@click.command(cls=OnPackage)
@click.argument("path")
@click.argument("inputs", nargs=-1, metavar="[INPUT...]")
@click.option("--format", "form", type=click.Choice(["table", "jsonl", "csv"]), help="how results are printed [table]")
@click.option("--json", "as_json", is_flag=True, help="one JSON object per result, as --format jsonl")
@click.option("--repeat", type=click.IntRange(1), default=1, metavar="N", help="run each input N times [1]")
@click.option("--warmup", type=click.IntRange(0), default=0, metavar="N", help="first run the first input N times [0]")
@click.option("--concurrency", type=click.IntRange(1), default=1, metavar="N", help="inputs at the same time [1]")
@click.option("--save", type=click.Path(path_type=Path), metavar="OUT.npy", help="save the results as arrays by name")
@click.option("--field", default="", metavar="NAME", help="the form field for files, if the package does not name one")
@lambda function: setting_options(function, (*OWN, *of_groups(HTTP, ACCESS, RECORDING)), (), PER_INPUT)
def run(path: str, inputs: tuple[str, ...], arguments: tuple[str, ...], save: Path | None, **given: Any) -> None:
    """Run the package at PATH on each INPUT, without a server.

    An INPUT is a file, a folder, a glob, JSON, a file of JSON lines, or - for standard input. Without an INPUT the
    package's own example is run: example(), request.json, or the platform's. If an input fails, the others still run,
    and the exit code is 1. Ctrl-C shows the results so far.
    """
    given["form"] = chosen_form(given["form"], given.pop("as_json"))
    own = {name: given.pop(name) for name in ("form", "repeat", "warmup", "concurrency", "field")}
    from panglot.logs import lines
    from panglot.tools.run.inputs import gather
    from panglot.tools.run.running import RunPlan

    if save is not None:
        import panglot.tools.arrays  # noqa: F401  it says what to install, before anything is run
    package, resolved = resolve_package(path, given, arguments)
    warn(resolved.warnings)
    gathered = gather(inputs) if inputs else []
    quiet = resolved.sources["log_level"] == "default"
    lines.configure(resolved.settings.log_format, "critical" if quiet else resolved.settings.log_level)
    plan = RunPlan(own["repeat"], own["warmup"], own["concurrency"], own["field"], record=save is not None)
    sys.exit(_run(package, resolved.settings, gathered, plan, own["form"], save))


def _run(
    package: Package, settings: Settings, gathered: list[Input], plan: RunPlan, form: str | None, save: Path | None
) -> int:
    from panglot.tools.run import result_writers, running

    done: list[RunResult] = []
    writer = result_writers.writer(form or ("table" if sys.stdout.isatty() else "jsonl"), sys.stdout)
    began = time.monotonic()
    count = len(gathered) or 1
    with Bar(count, package.name) as bar:

        def report(result: RunResult) -> None:
            done.append(result)
            writer.add(result)
            bar.advance()

        def loaded() -> None:
            nonlocal began
            began = time.monotonic()
            bar.begin()

        completed = asyncio.run(running.run(package, settings, gathered, plan, report, loaded))
    writer.close()
    if save is not None and done:
        _save(save, done)
    _show_failure(done)
    line = result_writers.summary(done, count, time.monotonic() - began)
    click.echo(line if completed else f"interrupted: {line}", err=True)
    return 130 if not completed else 1 if any(result.failed for result in done) else 0


def _save(path: Path, done: list[RunResult]) -> None:
    from panglot.tools.arrays import write
    from panglot.tools.run.running import arrays

    saved, left = arrays(done)
    write(path, saved)
    left_out = f"; no arrays, and left out: {', '.join(left)}" if left else ""
    click.echo(f"{counted(len(saved), 'array')} saved to {path}{left_out}", err=True)


def _show_failure(done: list[RunResult]) -> None:
    """Print the traceback of the first failure. Those of further failures are often the same."""
    from panglot.terminal.text import visible

    first = next((result for result in done if result.failed and result.traceback), None)
    if first is not None:
        click.echo(f"\n{visible(first.name)}:\n{visible(first.traceback.rstrip(), chr(10) + chr(9))}\n", err=True)


class Bar:
    """A bar for the progress on a terminal. In a file there is none."""

    def __init__(self, total: int, name: str, begins_with: str = "loading") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self.task = self.bar.add_task(f"{begins_with} {name}", total=total)
        self.name = name

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.bar.stop()

    def begin(self) -> None:
        self.bar.update(self.task, description=f"running {self.name}")

    def advance(self) -> None:
        self.bar.advance(self.task)
