"""The figures of a server's status page, for a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from panglot.errors import StartError
from panglot.text import visible
from panglot.tools.asked_server import AskedServer, is_url

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

BARS = "▁▂▃▄▅▆▇█"
HISTORY, REQUESTS, ERRORS = 60, 12, 8
"""Seconds that are drawn, and rows that are shown."""
COLOURS = {"ready": "green", "loading": "yellow", "draining": "yellow", "back-off": "red"}
GOOD, REFUSED, FAILED, P50, P95, P99, WAITING, RUNNING, BATCH, CPU, MEMORY = range(1, 12)


def reached(url: str) -> AskedServer:
    """The server at an address. Raises StartError for what is none."""
    return AskedServer(url if is_url(url) else f"http://{url}")


def text(server: AskedServer) -> str:
    """What the server tells. Raises StartError when it does not, or is none of ours."""
    status, body = server.get("/status.json")
    if status == 401:
        raise StartError(f"{server.base} wants a token", fix="set PANGLOT_TOKEN")
    if status != 200:
        raise StartError(f"{server.base} has no figures to show (status {status})", fix="is it a server of Panglot?")
    return body


def read(server: AskedServer) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(text(server))
    except ValueError:
        raise StartError(f"{server.base} has no figures to show", fix="is it a server of Panglot?") from None
    return told


# Drawing


def screen(told: dict[str, Any], url: str) -> Group:
    """All figures, from the most to the least important."""
    from rich.console import Group

    parts: list[RenderableType] = [_head(told, url), _rates(told), "", _workers(told)]
    if told["errors"]:
        parts += ["", _errors(told["errors"])]
    return Group(*parts, "", _requests(told["recent"]))


def lost(words: str, url: str) -> Group:
    from rich.console import Group
    from rich.text import Text

    return Group(
        Text(url, "bold"), Text(visible(words), "red"), Text("Waiting for it to come back. Ctrl-C ends.", "dim")
    )


def _head(told: dict[str, Any], url: str) -> RenderableType:
    from rich.text import Text

    names = ", ".join(visible(model["name"]) for model in told["about"]["models"])
    state = told["state"]
    facts = f"  up {duration(told['uptime'])}   {told['answered']:,} answered   {told['failed']:,} failed"
    return Text.assemble((names, "bold"), f"  {url}  ", (f"● {state}", COLOURS.get(state, "")), (facts, "dim"), "\n")


def _rates(told: dict[str, Any]) -> Table:
    """A row for each figure of the last second, with a minute of it as a line of bars."""
    history: list[list[float]] = told["history"][-HISTORY:]
    now = history[-1] if history else [0.0] * 12
    rows = (
        ("requests/s", f"{now[GOOD] + now[REFUSED] + now[FAILED]:,.1f}", [sum(row[GOOD:P50]) for row in history]),
        ("failed/s", f"{now[FAILED]:,.1f}", [row[FAILED] for row in history]),
        ("p50", _milliseconds(now[P50]), [row[P50] for row in history]),
        ("p95", _milliseconds(now[P95]), [row[P95] for row in history]),
        ("p99", _milliseconds(now[P99]), [row[P99] for row in history]),
        ("waiting", f"{now[WAITING]:,.0f}", [row[WAITING] for row in history]),
        ("batch size", f"{now[BATCH]:,.1f}", [row[BATCH] for row in history]),
        ("CPU", f"{now[CPU] * 100:,.0f} %", [row[CPU] for row in history]),
        ("memory", size(now[MEMORY]), [row[MEMORY] for row in history]),
    )
    table = _table(("", ""), ("now", "right"), ("last minute", ""))
    for name, figure, values in rows:
        table.add_row(name, figure, line(values), style="red" if name == "failed/s" and now[FAILED] else "")
    return table


def _workers(told: dict[str, Any]) -> Table:
    """A row for each worker."""
    heads = [("worker", ""), ("state", ""), ("pid", "right"), ("served", "right"), ("in flight", "right")]
    table = _table(*heads, ("CPU", "right"), ("memory", "right"), ("since", "right"))
    several = len(told["about"]["models"]) > 1
    for worker in told["workers"]:
        name = " ".join(str(part) for part in (worker["model"] if several else "", worker["pool"], worker["index"]))
        cells = (worker["state"], worker["pid"], f"{worker['served']:,}", worker["in_flight"])
        costs = (f"{worker['cpu'] * 100:.0f} %", size(worker["memory"]), duration(worker["seconds"]))
        table.add_row(visible(name.strip()), *map(str, (*cells, *costs)))
    return table


def _errors(groups: Sequence[dict[str, Any]]) -> Table:
    """What went wrong, grouped."""
    table = _table(("what went wrong", ""), ("count", "right"), ("last", ""))
    for group in groups[:ERRORS]:
        table.add_row(visible(group["what"]), f"{group['count']:,}", clock(group["last"]))
    return table


def _requests(recent: Sequence[dict[str, Any]]) -> Table:
    """The last requests, the latest first."""
    table = _table(
        ("request", ""), ("time", ""), ("route", ""), ("status", "right"), ("total", "right"), ("stages", "")
    )
    for entry in reversed(recent[-REQUESTS:]):
        stages = "  ".join(f"{name} {ms:.2f}" for name, ms in entry["stages"].items())
        style = "red" if entry["status"] >= 500 else "yellow" if entry["status"] >= 400 else ""
        cells = (clock(entry["when"]), entry["route"], str(entry["status"]), f"{entry['total']:,.2f} ms", stages)
        table.add_row(visible(entry["id"]), *cells, style=style)
    for column in table.columns[:-1]:
        column.min_width = max(len(str(text)) for text in (column.header, *column.cells))
    return table


def _table(*heads: tuple[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), title_justify="left")
    for name, justify in heads:
        table.add_column(name, justify=justify or "left", no_wrap=True)
    return table


def _milliseconds(value: float) -> str:
    """In a second without an answer there is no latency."""
    return f"{value:,.2f} ms" if value else "–"


def line(values: Sequence[float]) -> str:
    """Values as a line of bars, the highest of them as high as can be."""
    most = max(values, default=0.0)
    if most <= 0:
        return BARS[0] * len(values)
    return "".join(BARS[min(len(BARS) - 1, int(value / most * len(BARS)))] for value in values)


def size(value: float) -> str:
    return f"{value / 1e9:,.2f} GB" if value >= 1e9 else f"{value / 1e6:,.1f} MB"


def clock(when: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(when))


def duration(seconds: float) -> str:
    """Two units at most: `45 s`, `3 min 20 s`, `5 h 2 min`, `12 d 4 h`."""
    total = int(seconds)
    for unit, length, next_unit, next_length in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if total >= length:
            return f"{total // length} {unit} {total % length // next_length} {next_unit}"
    return f"{total} s"
