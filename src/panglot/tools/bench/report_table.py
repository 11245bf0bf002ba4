"""The figures of a bench on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from panglot.terminal.tables import Column, RowByRow
from panglot.tools.bench.figures import Bench, Change
from panglot.tools.bench.levels import Level

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = {
    Column("load"): 10,
    Column("answers/s", right=True): 9,
    Column("mean ms", 5, right=True): 8,
    Column("p50", right=True): 8,
    Column("p95", 4, right=True): 8,
    Column("p99", right=True): 8,
    Column("p99.9", 8, right=True): 8,
    Column("max", 3, right=True): 8,
    Column("failed", right=True): 6,
    Column("batch", 2, right=True): 5,
    Column("CPU", 6, right=True): 6,
    Column("memory", 7, right=True): 8,
}
"""The columns of figures, with the width that each may take."""
STYLES = {"better": "green", "worse": "bold red", "same": "dim"}
HINT = "--json has them"


class Levels:
    """The table of loads, a row for each as soon as it has ended."""

    def __init__(self, console: Console, checked: bool, gpu: bool) -> None:
        columns = dict(COLUMNS)
        if gpu:
            columns |= {Column("GPU", 1, right=True): 6, Column("GPU memory", 1, right=True): 10}
        if checked:
            columns[Column("wrong", right=True)] = 5
        self.gpu = gpu
        self.rows = RowByRow(console, list(columns), list(columns.values()), HINT)

    def add(self, level: Level, is_first: bool) -> None:
        if is_first:
            self.rows.head()
        self.rows.add(_row(level, self.gpu))

    def close(self) -> None:
        self.rows.close()


def show_more(console: Console, bench: Bench) -> None:
    """Print the stages below the loads, then the warnings."""
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


SPARE_STAGES = {"queue": 2, "decode": 4, "preprocess": 3, "inference": 1, "postprocess": 3, "encode": 4, "total": 1}


def _show_stages(console: Console, levels: Sequence[Level]) -> None:
    names = list(dict.fromkeys(name for level in levels for name in level.stages))
    if not names:
        return
    figures = [Column(name, SPARE_STAGES.get(name, 5), right=True) for name in names]
    columns = (Column("mean ms at"), *figures, Column("generator CPU", 6, right=True))
    widths = [10, *(max(8, len(name)) for name in names), len("generator CPU")]
    rows = RowByRow(console, columns, widths, HINT)
    console.print()
    rows.head()
    for level in levels:
        times = (f"{level.stages[name]['mean']:.3f}" if name in level.stages else "-" for name in names)
        rows.add([str(level.load), *times, f"{level.generator['cpu'] * 100:.0f} %"])
    rows.close()


def show_changes(console: Console, changes: Sequence[Change], old: Bench) -> None:
    """Print the changes against an older bench."""
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
