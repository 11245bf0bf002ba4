"""A bench as an HTML page: one file that loads nothing from elsewhere, light and dark."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path

from panglot.errors import StartError
from panglot.terminal.text import visible
from panglot.tools.bench import plots
from panglot.tools.bench.figures import Bench, Change
from panglot.tools.bench.histogram import FineHistogram
from panglot.tools.bench.levels import Level
from panglot.tools.bench.plots import Line
from panglot.web.pages.assets import STYLE
from panglot_worker.line.wire import STAGES

SPANS = ("queue", *STAGES)
CURVE = (0.1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99)
MARKS = ((50, "50 %"), (90, "90 %"), (99, "99 %"), (99.9, "99.9 %"), (99.99, "99.99 %"))


def write(bench: Bench, path: Path, changes: Sequence[Change] = ()) -> None:
    """Write the page to a file. Raises StartError when it cannot be written."""
    try:
        path.write_text(render(bench, changes), encoding="utf-8")
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def render(bench: Bench, changes: Sequence[Change] = ()) -> str:
    """The whole page."""
    style = STYLE.read_text(encoding="utf-8")
    title = f"{text(Path(bench.target).name or bench.target)} under load"
    cards = (
        ("Latency against load", "how long answers take as the load grows", latency(bench.levels)),
        ("Where the time goes", "mean of each stage, as the server reports it", stages(bench.levels)),
        ("Percentiles", "how slow the slowest are", percentiles(bench.levels)),
        ("Batch sizes", "share of batches by their size", batches(bench.levels)),
    )
    plotted = "".join(
        f'<section class="sheet"><h2>{name}</h2><p>{about}</p>{plot}</section>' for name, about, plot in cards
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style}</style></head><body class="report">'
        f"<header><h1>{title}</h1><p>{_about(bench)}</p></header>{tiles(bench)}"
        f"<main>{plotted}</main>{table(bench.levels)}{change_table(changes)}</body></html>\n"
    )


def text(value: object) -> str:
    return html.escape(visible(str(value)))


def _about(bench: Bench) -> str:
    inputs = f"{bench.inputs} input{'s' if bench.inputs != 1 else ''}"
    words = (bench.target, bench.dialect, inputs, bench.when, f"{bench.machine.get('cpus', '?')} CPUs")
    return " · ".join(text(word) for word in (*words, f"panglot {bench.panglot}"))


# The first look


def tiles(bench: Bench) -> str:
    """The few figures to see first, and what makes them doubtful."""
    best = max(bench.levels, key=lambda level: level.throughput)
    calm = min(bench.levels, key=lambda level: level.latency["p50"])
    failed = sum(level.failed for level in bench.levels)
    entries = [
        (f"{best.throughput:,.0f} /s", f"most answers, at {best.load}", ""),
        (f"{calm.latency['p50']:.3g} ms", f"median, at {calm.load}", ""),
        (f"{best.latency['p99']:.3g} ms", f"99th percentile, at {best.load}", ""),
        (str(failed), "requests failed", "bad" if failed else "good"),
    ]
    checked = sum(level.checked for level in bench.levels)
    if checked:
        wrong = sum(level.wrong for level in bench.levels)
        entries.append((str(wrong), f"wrong answers of {checked:,}", "bad" if wrong else "good"))
    shown = "".join(f'<li class="{kind}"><b>{text(figure)}</b>{text(about)}</li>' for figure, about, kind in entries)
    warnings = "".join(f'<p class="warning">{text(line)}</p>' for level in bench.levels for line in level.warnings())
    return f'<ul class="tiles">{shown}</ul>{warnings}'


# Plots


def latency(levels: Sequence[Level]) -> str:
    """A plot of percentiles of the latency over the loads."""
    positions = [number / (len(levels) - 1) if len(levels) > 1 else 0.5 for number in range(len(levels))]
    series = [
        Line(name, [(position, level.latency[name]) for position, level in zip(positions, levels, strict=True)])
        for name in ("p50", "p95", "p99", "p99.9")
    ]
    labels = [(position, str(level.load)) for position, level in zip(positions, levels, strict=True)]
    return plots.lines(series, labels, "ms")


def stages(levels: Sequence[Level]) -> str:
    """A bar per load, made of the mean times of its stages."""
    names = [name for name in SPANS if any(name in level.stages for level in levels)]
    if not names:
        return plots.nothing()
    rows = []
    for level in levels:
        means = [level.stages.get(name, {"mean": 0.0})["mean"] for name in names]
        total = level.stages.get("total", {"mean": 0.0})["mean"]
        rows.append((str(level.load), [*means, max(0.0, total - sum(means))]))
    return plots.bars(rows, [*names, "batch-mates and the server"], "ms")


def percentiles(levels: Sequence[Level]) -> str:
    """A plot of the latency over its percentiles, a line per load."""
    series = []
    for level in levels:
        counts = FineHistogram.of(level.histogram)
        # Few answers say nothing about high percentiles: these are left out.
        shares = [share for share in CURVE if counts.total * (100 - share) >= 100 or share <= 50]
        points = [(_nines(share), value / 1000) for share, value in counts.curve(shares)]
        series.append(Line(str(level.load), points))
    return plots.lines(series, [(_nines(share), label) for share, label in MARKS], "ms")


def _nines(share: float) -> float:
    """Equal steps for 50, 90, 99, 99.9 and 99.99 per cent, as far as a logarithm gives them."""
    return math.log10(100 / (100 - share)) / 4


def batches(levels: Sequence[Level]) -> str:
    """A plot of how many batches had which size, per load."""
    sizes = sorted({int(size) for level in levels for size in level.batches})
    labels = [_span(size) for size in sizes]
    series = []
    for level in levels:
        total = sum(level.batches.values())
        if total:
            series.append((str(level.load), [level.batches.get(str(size), 0) / total * 100 for size in sizes]))
    return plots.groups(labels, series, "items in a batch")


def _span(size: int) -> str:
    """The sizes in a bucket, such as 5-8 for the one up to 8."""
    return str(size) if size <= 2 else f"{size // 2 + 1}-{size}"


# Tables


def table(levels: Sequence[Level]) -> str:
    """All figures, a row per load."""
    headings = ("load", "answers/s", "mean", "p50", "p95", "p99", "p99.9", "max ms", "failed", "mean batch", "CPU",
                "memory", "GPU", "generator")  # fmt: skip
    rows = []
    for level in levels:
        cost, figures = level.cost, level.latency
        cells = [
            str(level.load),
            f"{level.throughput:,.1f}",
            *(f"{figures[name]:.2f}" for name in ("mean", "p50", "p95", "p99", "p99.9", "max")),
            str(level.failed),
            "-" if level.mean_batch is None else f"{level.mean_batch:.1f}",
            "-" if cost["cpu"] is None else f"{cost['cpu'] * 100:.0f} %",
            "-" if cost["memory"] is None else f"{cost['memory'] / 2**20:.0f} MiB",
            "-" if cost["gpu_use"] is None else f"{cost['gpu_use']:.0f} %, {cost['gpu_memory']:.0f} MiB",
            f"{level.generator['cpu'] * 100:.0f} %",
        ]
        rows.append("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="sheet scroll">{whole}</div>'


def change_table(changes: Sequence[Change]) -> str:
    """The table of changes against an older bench; empty without one."""
    if not changes:
        return ""
    rows = []
    for change in changes:
        share = (change.now - change.before) / change.before * 100 if change.before else 0.0
        cells = (str(change.load), change.figure, f"{change.before:.3g}", f"{change.now:.3g}", f"{share:+.1f} %",
                 f"±{change.noise:.2g}")  # fmt: skip
        row = "".join(f"<td>{text(cell)}</td>" for cell in cells)
        rows.append(f'<tr>{row}<td class="{change.verdict}">{change.verdict}</td></tr>')
    head = "".join(f"<th>{name}</th>" for name in ("load", "figure", "before", "now", "change", "noise", ""))
    rows_table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<h2>Against before</h2><div class="sheet scroll">{rows_table}</div>'
