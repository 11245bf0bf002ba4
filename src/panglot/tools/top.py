"""The figures of a server's status page, for a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from panglot.errors import StartError
from panglot.inputs.addresses import is_address
from panglot.terminal.tables import GAP, Column, fitting
from panglot.terminal.text import brief, visible
from panglot.tools.running_server import NOT_FOUND, RunningServer

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

BARS = "▁▂▃▄▅▆▇█"
HISTORY, REQUESTS, ERRORS, NAMES, ID = 60, 12, 8, 3, 24
"""Seconds that are drawn, rows and names of models that are shown, letters of a request's id."""
COLOURS = {
    "ready": "green", "loading": "yellow", "draining": "yellow", "back-off": "red",
    "asleep": "blue", "waking": "yellow",
}  # fmt: skip
NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError)
"""Errors that figures of another form raise, and times that no clock can show."""
GOOD, REFUSED, FAILED, P50, P95, P99, WAITING, RUNNING, BATCH, CPU, MEMORY = range(1, 12)


def reached(url: str) -> RunningServer:
    """The server at an address. Raises StartError for a text that is no address."""
    return RunningServer(url if is_address(url) else f"http://{url}")


def text(server: RunningServer) -> str:
    """The figures of a server, or of the model that its address names, as JSON.

    Raises StartError for a server that does not answer, has no such model, or is not Panglot.
    """
    name = server.address.model_name
    status, body = server.get(f"/status.json?model={name}" if name else "/status.json")
    if status == 401:
        raise StartError(f"{server.address} wants a token", fix="set PANGLOT_TOKEN")
    if status == NOT_FOUND and name:
        raise StartError(f"{server.address} has no model '{name}'", fix="panglot top without /models/... shows all")
    if status != 200:
        raise StartError(f"{server.address} has no figures to show (status {status})", fix="is it a server of Panglot?")
    return body


def read(server: RunningServer) -> dict[str, Any]:
    """The figures of a server. Raises StartError where the answer has none."""
    try:
        figures = json.loads(text(server))
    except (ValueError, RecursionError):
        figures = None
    if not isinstance(figures, dict):
        raise StartError(f"{server.address} has no figures to show", fix="is it a server of Panglot?")
    return figures


# Drawing


def screen(figures: dict[str, Any], url: str, width: int, height: int = 0, keys: bool = False) -> Group:
    """All figures, the most important first; on a screen with few lines, as many as fit.

    With `keys` the screen tells the keys. Raises StartError for figures that are not Panglot's.
    """
    try:
        return _screen(figures, url, width, height, keys)
    except NONSENSE as error:
        problem = f"{url} tells figures that make no sense ({brief(f'{type(error).__name__}: {error}', 100)})"
        raise StartError(problem, fix="is it a server of Panglot, and of this version?") from None


def _screen(figures: dict[str, Any], url: str, width: int, height: int, keys: bool) -> Group:
    from rich.console import Group

    sizes = _sizes(figures)
    fronts: list[RenderableType] = [_fronts(figures["fronts"], width), ""] if figures.get("fronts") else []
    workers = [*fronts, *sizes, _workers(figures, width)]
    parts: list[RenderableType] = [_head(figures, url, keys), "", _rates(figures, width), "", *workers]
    used = 6 + len(sizes) + len(fronts) + bool(figures.get("advice")) + _rows_of(parts)
    batches = _batches(figures["batches"])
    if batches:
        parts.append(batches)
        used += 1
    left = height - used if height else 0
    errors = _errors(figures, rows=min(ERRORS, max(1, (left - 3) // 2)) if height else ERRORS)
    if errors.row_count:
        parts += ["", errors]
        left -= errors.row_count + 2
    if not height or left > 2:
        parts += ["", _requests(figures, width, rows=min(REQUESTS, left - 2) if height else REQUESTS)]
    return Group(*parts)


def _rows_of(parts: Sequence[Any]) -> int:
    return sum(getattr(part, "row_count", 0) for part in parts)


def lost(words: str, url: str) -> Group:
    from rich.console import Group
    from rich.text import Text

    return Group(Text(url, "bold"), Text(visible(words), "red"), Text("Waiting for it to come back. q quits.", "dim"))


def _head(figures: dict[str, Any], url: str, keys: bool) -> RenderableType:
    from rich.text import Text

    known = [visible(name) for name in _names(figures)]
    state, restarts = figures["state"], sum(figures["restarts"].values())
    facts = f"up {duration(figures['uptime'])}   {figures['answered']:,} answered   {figures['failed']:,} failed"
    facts += f"   {restarts:,} restart{'s' * (restarts > 1)}" if restarts else ""
    shown = (f"● {visible(state)}", COLOURS.get(state, ""))
    asleep = [visible(name) for name in figures.get("asleep", ())]
    facts += f"   asleep: {_listed(asleep)}" if asleep and len(known) > 1 else ""
    advice = visible(figures.get("advice", ""))
    more = [("\n" + advice, "yellow")] if advice else []
    quits = ("   q quits", "dim") if keys else ""
    return Text.assemble((_listed(known), "bold"), f"  {url}  ", shown, quits, "\n", (facts, "dim"), *more)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} more" if len(names) > NAMES else "")


def _rates(figures: dict[str, Any], width: int) -> Table:
    """A row for each figure: the last second, and the last minute as a line of bars; on a narrow terminal, less."""
    history: list[list[float]] = figures["history"][-HISTORY:]
    now = history[-1] if history else [0.0] * 12
    rows = (
        ("requests/s", f"{now[GOOD] + now[REFUSED] + now[FAILED]:,.1f}", [sum(row[GOOD:P50]) for row in history]),
        ("4xx/s", f"{now[REFUSED]:,.1f}", [row[REFUSED] for row in history]),
        ("5xx/s", f"{now[FAILED]:,.1f}", [row[FAILED] for row in history]),
        ("p50", _milliseconds(now[P50]), [row[P50] for row in history]),
        ("p95", _milliseconds(now[P95]), [row[P95] for row in history]),
        ("p99", _milliseconds(now[P99]), [row[P99] for row in history]),
        ("waiting", f"{now[WAITING]:,.0f}", [row[WAITING] for row in history]),
        ("batch size", f"{now[BATCH]:,.1f}", [row[BATCH] for row in history]),
        ("CPU", f"{now[CPU] * 100:,.0f} %", [row[CPU] for row in history]),
        ("memory", size(now[MEMORY]), [row[MEMORY] for row in history]),
    )
    # The newest second is the last: a narrow terminal leaves out the oldest ones.
    space = width - sum(max(len(row[column]) for row in rows) + GAP for column in (0, 1))
    shown = max(1, min(HISTORY, space))
    table = _table(("", ""), ("now", "right"), ("last minute" if shown == HISTORY else f"last {shown} s", ""))
    for name, figure, values in rows:
        table.add_row(name, figure, line(values[-shown:]), style="red" if name == "5xx/s" and now[FAILED] else "")
    return table


def _sizes(figures: dict[str, Any]) -> list[RenderableType]:
    """A line for each pool that has a changing number of workers, with the last change."""
    from rich.text import Text

    lines: list[RenderableType] = []
    for size in figures.get("pools", ()):
        if "changes" in size:
            several = len(_names(figures)) > 1
            heading = " ".join(filter(None, (size["model"] if several else "", size["pool"], "workers")))
            last = [f"{clock(change['when'])} {change['before']} → {change['after']}: {change['why']}"
                    for change in size["changes"][-1:]]  # fmt: skip
            ready = f"{size['ready']} of {size['workers']}"
            wanted = f" ({size['wanted']} wanted)" if size["wanted"] != size["ready"] else ""
            line = Text.assemble(visible(f"{heading} {ready}{wanted}"), ("   " + visible("".join(last)), "dim"))
            line.no_wrap, line.overflow = True, "ellipsis"
            lines.append(line)
    return lines


FRONT = (
    Column("front"), Column("pid", 2, right=True), Column("busy", right=True), Column("memory", right=True),
    Column("connections", right=True), Column("requests/s", right=True), Column("lent", 1, right=True),
    Column("borrowed", 1, right=True),
)  # fmt: skip


def _fronts(fronts: Sequence[dict[str, Any]], width: int) -> Table:
    """A row for each front of a server that has several."""
    rows = [
        [
            *map(str, (front["front"], front["pid"], f"{front['busy'] * 100:.0f} %", size(front["memory"]))),
            *(f"{front[name]:,}" for name in ("connections", "requests", "lent", "borrowed")),
        ]
        for front in fronts
    ]
    return _fitted(FRONT, rows, width)


WORKER = (
    Column("worker"), Column("state"), Column("pid", 1, right=True), Column("served", right=True),
    Column("in flight", 2, right=True), Column("CPU", right=True), Column("memory", right=True),
    Column("GPU", right=True), Column("since", 3, right=True),
)  # fmt: skip


def _workers(figures: dict[str, Any], width: int) -> Table:
    """A row for each worker; a column for the GPU's memory, where a worker uses any."""
    several = len(_names(figures)) > 1
    rows = []
    for worker in figures["workers"]:
        name = " ".join(str(part) for part in (worker["model"] if several else "", worker["pool"], worker["index"]))
        cells = (worker["state"], worker["pid"], f"{worker['served']:,}", worker["in_flight"])
        gpu = size(worker["gpu"]) if "gpu" in worker else "–"
        costs = (f"{worker['cpu'] * 100:.0f} %", size(worker["memory"]), gpu, duration(worker["seconds"]))
        rows.append([visible(name.strip()), *map(str, (*cells, *costs))])
    shown = [
        at for at, column in enumerate(WORKER) if column.heading != "GPU" or any("gpu" in w for w in figures["workers"])
    ]
    return _fitted([WORKER[at] for at in shown], [[row[at] for at in shown] for row in rows], width)


def _batches(sizes: Sequence[tuple[int, int]]) -> str:
    """The number of batches by size; empty where all batches had one item."""
    if not any(most > 1 for most, _ in sizes):
        return ""
    return "batches of up to " + "   ".join(f"{most}: {count:,}" for most, count in sizes)


def _names(figures: dict[str, Any]) -> list[str]:
    """The names of the models that the figures belong to."""
    about = figures["about"]
    names = [str(model["name"]) for model in about["models"]]
    return [str(about["model"])] if about.get("model") else list(dict.fromkeys(names))


def _errors(figures: dict[str, Any], rows: int) -> Table:
    """Failures in groups. Deaths of workers are among them."""
    from rich.text import Text

    several = len(_names(figures)) > 1
    table = _table(("what went wrong", ""), ("count", "right"), ("last", ""))
    for group in figures["errors"][:rows]:
        whose = f"{group['model']}: " if several and group.get("model") else ""
        table.add_row(Text(visible(whose + group["what"])), f"{group['count']:,}", clock(group["last"]))
    return table


REQUEST = (
    Column("request"), Column("model"), Column("time", 1), Column("route", 2), Column("status", right=True),
    Column("total", right=True), Column("stages", 3, least=50),
)  # fmt: skip


def _requests(figures: dict[str, Any], width: int, rows: int) -> Table:
    """The last requests, the latest first; with a column for the model, where there are several."""
    latest = figures["recent"][-rows:][::-1]
    several = len(_names(figures)) > 1
    cells = []
    for entry in latest:
        stages = "  ".join(f"{name} {ms:.2f}" for name, ms in entry["stages"].items())
        name = visible(entry["id"])
        shown = name if len(name) <= ID else f"{name[: ID - 1]}…"
        times = (f"{entry['total']:,.2f} ms", stages)
        model = (entry.get("model", ""),) if several else ()
        cells.append([shown, *model, clock(entry["when"]), entry["route"], str(entry["status"]), *times])
    styles = ["red" if entry["status"] >= 500 else "yellow" if entry["status"] >= 400 else "" for entry in latest]
    columns = [column for column in REQUEST if several or column.heading != "model"]
    return _fitted(columns, cells, width, styles)


def _fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, styles: Sequence[str] = ()) -> Table:
    """A table with the columns that fit. Text in the last column is cut to fit."""
    from rich.text import Text

    rows = [[visible(cell) for cell in row] for row in rows]
    natural = [max([len(column.heading), *(len(row[at]) for row in rows)]) for at, column in enumerate(columns)]
    shown = fitting(columns, natural, width)
    table = _table(*((columns[at].heading, "right" if columns[at].right else "") for at in shown))
    for number, row in enumerate(rows):
        table.add_row(*(Text(row[at]) for at in shown), style=styles[number] if styles else "")
    for at, column in zip(shown, table.columns, strict=True):
        column.min_width = min(natural[at], columns[at].least or natural[at])
    return table


def _table(*heads: tuple[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for name, justify in heads:
        table.add_column(name, justify=justify or "left", no_wrap=True, overflow="ellipsis")
    return table


def _milliseconds(value: float) -> str:
    """A latency in words; a dash for a second without an answer, which has none."""
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
