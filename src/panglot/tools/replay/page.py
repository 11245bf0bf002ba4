"""A replay as an HTML page: one file that loads nothing from elsewhere, with plots and the worst pairs side by side."""

from __future__ import annotations

import base64
import html
import json
import os
from pathlib import Path
from typing import Any

from panglot.errors import StartError
from panglot.recording.recording import RecordedMessage
from panglot.recording.redaction import decoded
from panglot.terminal.text import visible
from panglot.tools.bench import plots
from panglot.tools.bench.plots import Line
from panglot.tools.replay.embedded import embedded
from panglot.tools.replay.findings import Findings
from panglot.web.pages.assets import STYLE

CURVE = (1, 10, 25, 50, 75, 90, 95, 99)
LONGEST = 4000
MOST_PICTURES = 8
"""Pictures of one body that are shown."""
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
"""Types that a browser shows without running anything; SVG is none of them."""
LAYOUT = (
    ".sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}.sides img,details img{max-width:100%}"
    "@media(max-width:40rem){.sides{grid-template-columns:1fr}}section.sheet{margin-top:1rem}"
    ".differences td,.differences th{text-align:left;white-space:normal;vertical-align:top}"
    ".differences td:last-child{min-width:18rem;overflow-wrap:anywhere}"
    ".sides pre,details pre{white-space:pre-wrap;overflow-wrap:anywhere;max-height:24rem;overflow:auto}"
)


def write(findings: Findings, path: Path, recording: str, target: str) -> None:
    """Write the page to a file which, like the recording, only its owner may read. Raises StartError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.write(render(findings, recording, target))
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another file") from None


def render(findings: Findings, recording: str, target: str) -> str:
    """The whole page. It has no script, and its policy allows none: answers in it may come from strangers."""
    title = f"{text(Path(recording).name)} replayed"
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE.read_text(encoding="utf-8")}{LAYOUT}</style>'
        f'</head><body class="report"><header><h1>{title}</h1><p>{text(recording)} · {text(target)}</p></header>'
        f"{_tiles(findings)}<main>{_latency(findings)}{_stages(findings)}</main>{_groups(findings)}{_worst(findings)}"
        "</body></html>\n"
    )


def text(value: object) -> str:
    return html.escape(visible(str(value), "\n\t"))


def _tiles(findings: Findings) -> str:
    bad = "bad" if findings.different else "good"
    entries = (
        (findings.compared, "answers compared", ""),
        (findings.different, "different", bad),
        (findings.unanswered, "without an answer", "bad" if findings.unanswered else "good"),
        (findings.skipped, "not sent", ""),
    )
    shown = "".join(f'<li class="{kind}"><b>{figure:,}</b>{about}</li>' for figure, about, kind in entries)
    slower = "".join(f'<p class="warning">{text(line)}</p>' for line in findings.slowdowns())
    return f'<ul class="tiles">{shown}</ul>{slower}'


def _latency(findings: Findings) -> str:
    sides = findings.sides
    series = [
        Line(name, [(share / 100, milliseconds / 1000) for share, milliseconds in histogram.curve(CURVE)])
        for name, histogram in (("recorded", sides.recorded), ("replayed", sides.replayed))
    ]
    plot = plots.lines(series, [(share / 100, f"{share} %") for share in (10, 50, 90)], "ms")
    return f'<section class="sheet"><h2>Latency</h2><p>percentiles, recorded and replayed</p>{plot}</section>'


def _stages(findings: Findings) -> str:
    means = {name: row for name, row in findings.sides.stage_means().items() if name != "total"}
    if not means:
        return ""
    rows = [(side, [row[side] for row in means.values()]) for side in ("recorded", "replayed")]
    plot = plots.bars(rows, list(means), "ms")
    return f'<section class="sheet"><h2>Where the time goes</h2><p>mean of each stage</p>{plot}</section>'


def _groups(findings: Findings) -> str:
    if not findings.groups:
        return ""
    rows = "".join(
        f"<tr><td>{text(group.kind)}</td><td>{text(group.place)}</td><td>{group.count:,} of {findings.compared:,}</td>"
        f"<td>{f'{group.gap:.3g}' if group.gap else ''}</td><td>{group.pair}</td>"
        f"<td>{text(group.detail[:400])}</td></tr>"
        for group in findings.ordered()
    )
    head = "".join(f"<th>{name}</th>" for name in ("kind", "place", "answers", "largest gap", "pair", "for example"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h2>Differences</h2><div class="sheet scroll differences">{table}</div>'


def _worst(findings: Findings) -> str:
    sections = []
    for pair, answer, noted in findings.worst():
        about = "; ".join(f"{each.place} {each.detail}".strip() for each in noted[:6])
        request = f"{pair.request.method} {pair.request.target}"
        sides = "".join(
            f"<div><h3>{name}: {side.status or 'no answer'}</h3>{_body(side)}</div>"
            for name, side in (("recorded", pair.answer), ("replayed", answer))
        )
        sections.append(
            f'<section class="sheet"><h2>Pair {pair.number}: {text(request)}</h2><p>{text(about[:1000])}</p>'
            f'<div class="sides">{sides}</div><details><summary>the request</summary>{_body(pair.request)}</details>'
            "</section>"
        )
    return "".join(sections)


def _body(message: RecordedMessage) -> str:
    """A body for people: pictures are shown as pictures, also inside of JSON."""
    if message.content_type in PICTURES:
        return _picture(message.content_type, message.body, "the body")
    if not message.body:
        return f"<p>{text(message.why or 'empty')}</p>"
    pictures: list[str] = []
    try:
        value = _without_pictures(json.loads(decoded(message)), pictures)
        shown = json.dumps(value, indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        shown = message.body[:LONGEST].decode(errors="replace")
    return f"{''.join(pictures)}<pre>{text(shown[:LONGEST])}</pre>"


def _without_pictures(value: Any, pictures: list[str]) -> Any:
    """The value with a name in place of each picture in it; the pictures are added to the list, up to a limit."""
    if isinstance(value, dict):
        return {key: _without_pictures(entry, pictures) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_pictures(entry, pictures) for entry in value]
    picture = embedded(value) if isinstance(value, str) else None
    if picture is None:
        return value
    name = f"{picture.kind}, {len(picture.content)} bytes"
    if len(pictures) < MOST_PICTURES:
        pictures.append(_picture(picture.kind, picture.content, name))
    return f"({name})"


def _picture(kind: str, content: bytes, name: str) -> str:
    return f'<img alt="{name}" src="data:{kind};base64,{base64.b64encode(content).decode()}">'
