"""The page that lists jobs, for the administrator's browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from starlette.responses import HTMLResponse, Response

from panglot.jobs.board import JobState
from panglot.jobs.job import STATES
from panglot.web.front import Front
from panglot.web.jobs.views import moment


def list_page(front: Front, jobs: Sequence[JobState], chosen: str) -> Response:
    """A table of jobs, with links to those in one state."""
    names = dict.fromkeys(STATES)
    links = " ".join(f'<a href="/jobs?state={name}">{name}</a>' for name in names)
    rows = "".join(map(_row, jobs))
    heading = f"Jobs{': ' + escape(chosen) if chosen else ''}"
    durable = "stored on disk" if front.jobs is not None and front.jobs.durable else "in memory: a restart loses them"
    table = (
        "<table><thead><tr><th>job<th>state<th>model<th>route<th>accepted<th>progress<th>attempts</thead>"
        f"<tbody>{rows}</tbody></table>"
    )
    style = "<style>body{font:14px system-ui;margin:2em}td,th{text-align:left;padding:.2em .8em .2em 0}</style>"
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>Jobs</title>{style}"
    page += f'<h1>{heading}</h1><p><a href="/jobs">all</a> {links}</p><p>{durable}</p>{table}</html>'
    return HTMLResponse(page)


def _row(state: JobState) -> str:
    job, progress = state.job, state.progress
    told = "" if progress is None else f"{(progress.fraction or 0) * 100:.0f} % {escape(str(progress.text))}"
    if job.error is not None:
        told = escape(str(job.error.get("message", "")))
    cells = (
        f'<a href="/jobs/{job.id}">{job.id}</a>', job.state_name, escape(job.model), escape(job.route),
        moment(job.accepted) or "", told, str(job.attempts),
    )  # fmt: skip
    return "<tr>" + "".join(f"<td>{cell}" for cell in cells)
