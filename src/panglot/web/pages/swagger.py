"""The page at `/docs`: Swagger UI, served from this machine alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response

import panglot
from panglot.engine.call import Fault
from panglot.web.contract import neutral_error
from panglot.web.front import Front
from panglot.web.pages.routes import about, name_of, views
from panglot.web.pages.shell import DOCS, framed

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ASSETS = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
"""All files below `/docs/`."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
ASSET_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "private, max-age=86400"}


def page(front: Front, name: str, language: str) -> Response:
    """The page itself, about all models or the one of this name. It loads nothing but our assets and the document."""
    current = about(DOCS, name)
    text = front.assets.template("docs.html").substitute(
        framed(front.assets.phrases(language), current, views(front, name), name_of(front, name), language),
        version=panglot.__version__,
    )
    return HTMLResponse(text, headers=HEADERS)


def asset(name: str, request_id: str) -> Response:
    """One file of Swagger UI; 404 for any name that is not in the table."""
    if name not in ASSETS:
        body = neutral_error(Fault(404, "not_found", "the page has no such file"), request_id).body
        return Response(body, 404, media_type="application/json")
    from swagger_ui_bundle import swagger_ui_path

    folder: Traversable = swagger_ui_path
    return Response((folder / name).read_bytes(), headers=ASSET_HEADERS, media_type=ASSETS[name])
