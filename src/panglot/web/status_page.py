"""The status page at `/`: plain HTML without scripts. Nothing reaches it unescaped."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template

import panglot
from panglot.engine import engine as states
from panglot.engine.engine import Trouble
from panglot.text import visible
from panglot.web.front import Front, Recent
from panglot.web.models import Model
from panglot_worker.wire import STAGES

REFRESH = 2
"""Seconds until the page loads itself again while the server is not ready."""
LONGEST_TRACEBACK = 20_000
NUMBER, WIDE = "number", "wide"
"""Classes of cells: figures, and what is left out on a phone."""
SPANS, REST = ("queue", *STAGES), "rest"
"""What a request's time consists of: waiting, the stages, and the way in and out."""
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Ccircle cx='8' cy='8' r='6' fill='%23{}'/%3E%3C/svg%3E"
)
COLOURS = {states.READY: "1d9a5b", states.LOADING: "d18f1b", states.DRAINING: "d18f1b", states.BACK_OFF: "d13c3c"}


def render(front: Front, model: Model, base: str) -> str:
    """The whole page; `base` is the address its reader came by, for the line to copy."""
    state = model.engine.state
    folder = resources.files("panglot.web")
    return Template((folder / "page.html").read_text(encoding="utf-8")).substitute(
        style=(folder / "page.css").read_text(encoding="utf-8"),
        refresh="" if state == states.READY else f'<meta http-equiv="refresh" content="{REFRESH}">\n',
        icon=ICON.format(COLOURS[state]),
        name=text(model.package.name),
        dialect=text(model.package.dialect),
        version=text(panglot.__version__),
        state=text(state),
        figures=figures(front, model),
        try_it=try_it(model, base),
        section=model.contract.section(model) if model.contract.section is not None else "",
        workers=workers(model),
        recent=requests(front.recent),
        troubles=troubles(model.engine.troubles, model.settings.dev),
    )


def text(value: object, keep: str = "") -> str:
    """Anything at all, as text that is safe in HTML and in quoted attributes."""
    return html.escape(visible(str(value), keep))


def try_it(model: Model, base: str) -> str:
    if not model.description:
        return empty("A line to copy appears here once the script is loaded.")
    line = model.try_line(base)
    if not line:
        return empty("For a line to copy here, put a request.json in the package's folder.")
    return f'<pre class="line"><code>{text(line)}</code></pre>'


def figures(front: Front, model: Model) -> str:
    """Uptime, answers, failures and what is in progress."""
    gauges = {name: value for name, _, labels, value in model.engine.gauges() if not labels}
    own = {route.name for route in model.contract.routes}
    answers = [(status, count) for (route, status), count in model.metrics.requests.items() if route in own]
    failed = sum(count for status, count in answers if status >= 500)
    progress = f"{gauges.get('panglot_requests_in_progress', 0):,.0f}"
    if gauges.get("panglot_queue_length"):
        progress += f" ({gauges['panglot_queue_length']:,.0f} waiting)"
    entries = {
        "Uptime": duration(time.monotonic() - front.began),
        "Answered": f"{sum(count for _, count in answers):,}",
        "Failed (5xx)": f"{failed:,}",
        "In progress": progress,
    }
    return "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in entries.items())


def workers(model: Model) -> str:
    """A row for each worker: its state, and what it has done."""
    rows = [
        (
            cell(f"{worker['pool']} {worker['index']}".strip()),
            condition(worker["state"], worker["step"]),
            cell(worker["pid"] or "–", f"{NUMBER} {WIDE}"),
            cell(f"{worker['served']:,}", NUMBER),
            cell(worker["in_flight"], NUMBER),
            cell(duration(worker["seconds"]), NUMBER),
        )
        for worker in model.engine.workers()
    ]
    if not rows:
        return empty("No worker is running.")
    heads = (("Worker", ""), ("State", ""), ("Process", f"{NUMBER} {WIDE}"), ("Served", NUMBER))
    return table((*heads, ("In flight", NUMBER), ("Since", NUMBER)), rows)


def requests(recent: Iterable[Recent]) -> str:
    """The latest first, each with a bar of where its time went."""
    rows = [
        (
            moment(when),
            cell(identity.decode("latin-1"), "id code"),
            cell(route, WIDE),
            cell(status, f"{NUMBER} {verdict(status)}"),
            cell(milliseconds(total), NUMBER),
            f'<td class="stages">{bar(total, (queued, *times))}</td>',
        )
        for when, identity, route, status, total, queued, times in reversed(list(recent))
    ]
    if not rows:
        return empty("None yet.")
    heads = (
        ("Time", ""),
        ("Request", ""),
        ("Route", WIDE),
        ("Status", NUMBER),
        ("Total", NUMBER),
        ("Stages", "stages"),
    )
    return table(heads, rows, "requests") + f'\n<p class="legend">{"".join(map(key, (*SPANS, REST)))}</p>'


def verdict(status: int) -> str:
    return "failed" if status >= 500 else "refused" if status >= 400 else ""


def bar(total: int, times: Sequence[int]) -> str:
    """How a request's microseconds divide over queue and stages; what is left is the way in and out."""
    scale = max(total, sum(times), 1)
    spans = [(name, took) for name, took in zip(SPANS, times, strict=True) if took]
    words = ", ".join(f"{name} {milliseconds(took)}" for name, took in spans) or "no stage was reached"
    pieces = "".join(f'<i class="{name}" style="width:{100 * took / scale:.2f}%"></i>' for name, took in spans)
    return f'<div class="bar" role="img" title="{words}" aria-label="{words}">{pieces}</div>'


def key(name: str) -> str:
    return f'<span><i class="{name}"></i>{name}</span>'


def troubles(entries: Sequence[Trouble], dev: bool) -> str:
    """The last script failures, latest first; with their tracebacks in `dev`."""
    if not entries:
        return empty("None since the server started.")
    if dev:
        return "\n".join(map(traceback, reversed(entries)))
    rows = [
        (moment(entry.when), cell(entry.request_id, "id code"), cell(entry.message, "message"))
        for entry in reversed(entries)
    ]
    hint = '<p class="legend">Start with --dev to see tracebacks here; they are in the log too.</p>'
    return table((("Time", ""), ("Request", ""), ("What happened", "message")), rows, "errors") + "\n" + hint


def traceback(entry: Trouble) -> str:
    full = entry.traceback.strip()
    last = full.rpartition("\n")[2] or entry.message
    shown = full if len(full) <= LONGEST_TRACEBACK else "…\n" + full[-LONGEST_TRACEBACK:]
    head = f'{clock(entry.when)}<span class="code">{text(entry.request_id)}</span>{text(last)}'
    return f"<details><summary>{head}</summary><pre>{text(shown, keep=chr(10) + chr(9))}</pre></details>"


def table(heads: Iterable[tuple[str, str]], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Cells in rows, under heads with their classes."""
    first = "".join(f'<th scope="col" class="{style}">{name}</th>' for name, style in heads)
    lines = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    body = f"<thead><tr>{first}</tr></thead>\n<tbody>\n{lines}\n</tbody>"
    return f'<div class="sheet"><table class="{kind}">\n{body}\n</table></div>'


def condition(state: str, step: str) -> str:
    return f'<td><span class="state {text(state)}">{text(state)}</span> <span class="quiet">{text(step)}</span></td>'


def cell(value: object, kind: str = "") -> str:
    attributes = f' class="{text(kind)}"' if kind else ""
    if kind.startswith("id"):
        attributes += f' title="{text(value)}"'
    return f"<td{attributes}>{text(value)}</td>"


def moment(when: float) -> str:
    return f"<td>{clock(when)}</td>"


def clock(when: float) -> str:
    then = time.localtime(when)
    return f'<time datetime="{time.strftime("%Y-%m-%dT%H:%M:%S%z", then)}">{time.strftime("%H:%M:%S", then)}</time>'


def empty(sentence: str) -> str:
    return f'<p class="sheet empty">{sentence}</p>'


def milliseconds(microseconds: int) -> str:
    if microseconds < 10_000_000:
        return f"{microseconds / 1000:,.2f} ms" if microseconds < 100_000 else f"{microseconds / 1000:,.0f} ms"
    return f"{microseconds / 1_000_000:,.1f} s"


def duration(seconds: float) -> str:
    """Two units at most: `45 s`, `3 min 20 s`, `5 h 2 min`, `12 d 4 h`."""
    total = int(seconds)
    for unit, size, next_unit, next_size in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if total >= size:
            return f"{total // size} {unit} {total % size // next_size} {next_unit}"
    return f"{total} s"
