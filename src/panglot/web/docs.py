"""The page at `/docs`: Swagger UI, served from this machine alone."""

from __future__ import annotations

import html
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response

import panglot
from panglot.engine.call import Fault
from panglot.text import visible
from panglot.web.contract import neutral_error

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

OURS, SWAGGER = "panglot.web", "swagger_ui_bundle"
ASSETS = {
    "docs.css": (OURS, "text/css"),
    "docs.js": (OURS, "text/javascript"),
    "swagger-ui.css": (SWAGGER, "text/css"),
    "swagger-ui-bundle.js": (SWAGGER, "text/javascript"),
}
"""All that is served below `/docs/`."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
ASSET_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "private, max-age=86400"}


def page(title: str) -> Response:
    """The page itself. It loads nothing but our assets and the document."""
    template = Template((resources.files(OURS) / "docs.html").read_text(encoding="utf-8"))
    name = html.escape(visible(title))
    return HTMLResponse(template.substitute(name=name, version=panglot.__version__), headers=HEADERS)


def asset(name: str, request_id: str) -> Response:
    """One file of the page; 404 for any name that is not in the table."""
    source, content_type = ASSETS.get(name, ("", ""))
    if not source:
        _, _, body = neutral_error(Fault(404, "not_found", "the page has no such file"), request_id)
        return Response(body, 404, media_type="application/json")
    return Response((_folder(source) / name).read_bytes(), headers=ASSET_HEADERS, media_type=content_type)


def _folder(source: str) -> Traversable:
    if source == OURS:
        return resources.files(OURS)
    from swagger_ui_bundle import swagger_ui_path

    folder: Traversable = swagger_ui_path
    return folder
