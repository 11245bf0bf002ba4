"""A page: the frame that all of them share, and the script that fills it."""

from __future__ import annotations

import html
from collections.abc import Iterable

from starlette.responses import HTMLResponse, Response

import panglot
from panglot.terminal.text import visible
from panglot.web.contract import View
from panglot.web.pages.assets import Assets
from panglot.web.pages.language import Phrases

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "worker-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; frame-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


HOME = View("./", "Models", "playground.js")
"""The first page of a server that has several models."""
PLAYGROUND = View("./", "Playground", "playground.js")
STATUS = View("status", "Status", "status.js")
JOBS = View("jobs", "Jobs", "jobs.js")
DOCS = View("docs", "API", "")


def page(assets: Assets, view: View, views: Iterable[View], name: str, language: str, status: int = 200) -> Response:
    """The page of a view, with links to the others."""
    phrases = assets.phrases(language)
    text = assets.template("page.html").substitute(
        framed(phrases, view, views, name, language),
        version=shown(panglot.__version__),
        script=view.script,
        preload="\n".join(f'<link rel="modulepreload" href="pages/{entry}">' for entry in assets.imported(view.script)),
    )
    return HTMLResponse(text, status, headers=HEADERS)


def framed(phrases: Phrases, view: View, views: Iterable[View], name: str, language: str) -> dict[str, str]:
    """The texts that every page has around its content."""
    return {
        "language": language,
        "name": shown(name),
        "title": shown(title(view, phrases)),
        "links": "".join(link(entry, title(entry, phrases), entry.path == view.path) for entry in views),
        **{key: shown(phrases[key]) for key in ("skip", "pages", "needs_javascript")},
    }


def title(view: View, phrases: Phrases) -> str:
    """The title of a view, as its dictionary has it under `page_` and the title; a dialect may have none."""
    return phrases.get("page_" + view.title.lower().replace(" ", "_"), view.title)


def link(view: View, title: str, current: bool) -> str:
    here = ' aria-current="page"' if current else ""
    return f'<a href="{view.path}"{here}>{shown(title)}</a>'


def shown(value: object) -> str:
    """Anything at all, as text that is safe in HTML and in quoted attributes."""
    return html.escape(visible(str(value)))
