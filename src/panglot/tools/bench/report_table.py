"""The figures of a bench on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from panglot.tools.bench.figures import Bench, Change
from panglot.tools.bench.levels import Level

if TYPE_CHECKING:
    from rich.console import Console

HEADINGS = ("load", "answers/s", "mean ms", "p50", "p95", "p99", "p99.9", "max", "failed", "batch", "CPU", "memory")
STYLES = {"better": "green", "worse": "bold red", "same": "dim"}


def show(console: Console, bench: Bench) -> None:
    """Print a row for each load, the stages below, then the warnings."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "load" else "right", no_wrap=True)
    gpu = any(level.cost["gpu_use"] is not None for level in bench.levels)
    checked = any(level.checked for level in bench.levels)
    for heading in (*(("GPU", "GPU memory") if gpu else ()), *(("wrong",) if checked else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    for level in bench.levels:
        table.add_row(*_row(level, gpu))
    console.print(table)
    _show_stages(console, bench.levels)
    for level in bench.levels:
        for warning in level.warnings():
            console.print(f"[yellow]warning:[/yellow] {warning}")


def _row(level: Level, gpu: bool) -> list[str]:
    latency = level.latency
    batch = level.mean_batch
    cost = level.cost
    row = [
        str(level.load),
        f"{level.throughput:.1f}",
        *(f"{latency[name]:.2f}" for name in ("mean", "p50", "p95", "p99", "p99.9", "max")),
        f"[red]{level.failed}[/red]" if level.failed else "0",
        "-" if batch is None else f"{batch:.1f}",
        "-" if cost["cpu"] is None else f"{cost['cpu'] * 100:.0f} %",
        "-" if cost["memory"] is None else f"{cost['memory'] / 2**20:.0f} MiB",
    ]
    if gpu:
        row += [_figure(cost["gpu_use"], "%"), _figure(cost["gpu_memory"], "MiB")]
    if level.checked:
        row.append(f"[bold red]{level.wrong}[/bold red]" if level.wrong else "[green]0[/green]")
    return row


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.0f} {unit}"


def _show_stages(console: Console, levels: Sequence[Level]) -> None:
    from rich.table import Table

    names = list(dict.fromkeys(name for level in levels for name in level.stages))
    if not names:
        return
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), title_justify="left")
    table.add_column("mean ms at")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("generator CPU", justify="right", no_wrap=True)
    for level in levels:
        times = (f"{level.stages[name]['mean']:.3f}" if name in level.stages else "-" for name in names)
        table.add_row(str(level.load), *times, f"{level.generator['cpu'] * 100:.0f} %")
    console.print()
    console.print(table)


def show_changes(console: Console, changes: Sequence[Change], old: Bench) -> None:
    """Print how the figures compare with those of an older bench."""
    from rich.table import Table

    console.print(f"\nagainst {old.when} (panglot {old.panglot})")
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for heading in ("load", "figure", "before", "now", "change", "noise", ""):
        table.add_column(heading, justify="left" if heading in ("load", "figure", "") else "right", no_wrap=True)
    for change in changes:
        share = (change.now - change.before) / change.before * 100 if change.before else 0.0
        figures = (f"{change.before:.3g}", f"{change.now:.3g}", f"{share:+.1f} %", f"±{change.noise:.2g}")
        style = STYLES[change.verdict]
        table.add_row(str(change.load), change.figure, *figures, f"[{style}]{change.verdict}[/{style}]")
    console.print(table if changes else "no load is the same in both")
