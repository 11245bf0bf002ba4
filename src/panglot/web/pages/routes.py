"""The routes of the pages: those that browsers open, those that their scripts request, logging in and out."""

from __future__ import annotations

import dataclasses
import functools
import mimetypes
from typing import Any
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from panglot.engine.call import Fault
from panglot.web.access.keys import KeyHolder
from panglot.web.contract import ADMIN, PUBLIC, Page, View, neutral_error
from panglot.web.documents.bodies import sendable
from panglot.web.front import Front
from panglot.web.models import Model
from panglot.web.pages.language import language_of
from panglot.web.pages.live import plain, seen
from panglot.web.pages.shell import DOCS, HOME, JOBS, PLAYGROUND, STATUS, page
from panglot.web.v2 import metadata

LOGIN = View("", "Log in", "login.js")


def views(front: Front, name: str = "") -> list[View]:
    """The pages of this server, in the order of their links. Of several models those about the one of this name."""
    model = front.models.default
    several = len(front.models.names) > 1
    tried = (HOME, *((PLAYGROUND,) if name else ())) if several else (PLAYGROUND,)
    of_dialect = model.contract.views if model is not None and name in ("", model.name) else ()
    shown = () if front.settings.no_playground else tried
    pages = [view if view is HOME else about(view, name) for view in shown]
    jobs = (JOBS,) if front.jobs is not None and front.jobs.is_used else ()
    return [*pages, *of_dialect, about(STATUS, name), *jobs, about(DOCS, name)]


def about(view: View, name: str) -> View:
    """A page that is about one of several models; without a name, about all of them, or the only one."""
    return dataclasses.replace(view, path=f"{view.path}?model={quote(name)}") if name else view


def chosen(front: Front, request: Request) -> str:
    """The name of the model that a page is about, where there are several; empty: it is about all."""
    name = request.query_params.get("model", "")
    return name if len(front.models.names) > 1 and front.models.get(name) is not None else ""


def of_dialect(front: Front) -> list[Page]:
    """The pages that the dialect of the default model adds."""
    model = front.models.default
    pages = []
    for view in model.contract.views if model is not None else ():
        if view.folder is not None:
            front.assets.add(view.folder)
        pages.append(Page(f"/{view.path}", ADMIN, functools.partial(view_page, view=view)))
    return pages


def name_of(front: Front, name: str = "") -> str:
    """The name of the server on its pages, or of the model that a page is about."""
    only = front.models.default if len(front.models.names) == 1 else None
    return name or (only.package.name if only is not None else "Panglot")


# Pages


def view_page(front: Front, request: Request, view: View) -> Response:
    name = chosen(front, request)
    current = about(view, name) if view in (PLAYGROUND, STATUS) else view
    return page(front.assets, current, views(front, name), name_of(front, name), language_of(request))


def playground(front: Front, request: Request) -> Response:
    if front.settings.no_playground:
        return status(front, request)
    is_home = len(front.models.names) > 1 and not chosen(front, request)
    return view_page(front, request, HOME if is_home else PLAYGROUND)


def model_page(front: Front, request: Request, path: str = "") -> Response:
    """The playground of one model, or another page about it, wherever that is."""
    name = request.path_params["model"]
    if front.models.get(name) is None:
        return _not_found("there is no such model", request)
    up = "../../" if path else "../"
    return Response(status_code=303, headers={"location": f"{up}{path}?model={quote(name)}"})


def status(front: Front, request: Request) -> Response:
    return view_page(front, request, STATUS)


def jobs_page(front: Front, request: Request) -> Response:
    return view_page(front, request, JOBS)


def login_page(front: Front, language: str) -> Response:
    """The form for the token, instead of the page that needs it. Of the server it shows nothing but `Panglot`."""
    response = page(front.assets, LOGIN, (), "Panglot", language, 401)
    response.headers["www-authenticate"] = "Bearer"
    return response


def asset(front: Front, request: Request) -> Response:
    answer = front.assets.answer(request.path_params["name"], request)
    return answer if answer is not None else _not_found("the pages have no such file", request)


def frame(front: Front, request: Request) -> Response:
    """The frame that shows an answer of HTML: in it no script runs, and nothing is loaded."""
    return Response(front.assets.template("frame.html").template, headers=FRAME, media_type="text/html")


FRAME = {
    "content-security-policy": "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:; media-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


# For the playground


def playground_data(front: Front, request: Request) -> Response:
    """The data of the playground besides the API's document.

    It describes each model; for the model that is tried it has the first requests and their files.
    """
    served = [model for name in front.models.names if (model := front.models.get(name)) is not None]
    absent = [entry for entry in metadata.index(front.models) if entry["name"] not in front.models.names]
    # At the root are the routes of the default alone.
    at_root = len(served) == 1 and served[0] is front.models.default
    models = [model for model in served if may_see(request, model.name)]
    starts = ["" if at_root else f"/models/{quote(model.name)}" for model in models]
    tried = chosen(front, request) if len(served) > 1 else served[0].name if served else ""
    value = {
        "state": front.live.state(tried),
        "token": front.access.is_closed,
        "several": len(served) != 1,
        "models": [
            {**_listed(front, model, start), **(_to_try(model, start) if model.name == tried else {})}
            for model, start in zip(models, starts, strict=True)
        ],
        "absent": [entry for entry in absent if may_see(request, entry["name"])],
    }
    return _json(value)


def may_see(request: Request, name: str) -> bool:
    """Whether the key of a request, if it came with one, is for this model."""
    holder: KeyHolder | None = request.scope.get("key_holder")
    return holder is None or holder.key is None or holder.key.reaches_model(name)


def _listed(front: Front, model: Model, start: str) -> dict[str, Any]:
    """What a model is. Its paths begin with `start`."""
    return {
        "name": seen(model.name),
        "start": start,
        "versions": front.models.versions(model.name),
        "dialect": model.package.dialect,
        "state": model.engine.state,
        "described": bool(model.description),
        "summary": seen(model.api.get("summary") or ""),
        "max_body": model.settings.max_body or None,
    }


def _to_try(model: Model, start: str) -> dict[str, Any]:
    """The requests that a model is tried with, and their files."""
    requests, files = model.examples() if model.description else ([], {})
    known = [request for request in requests if sendable(request, None) is not None]
    return {"requests": [{**request, "path": start + request["path"]} for request in known], "files": sorted(files)}


def sample(front: Front, request: Request) -> Response:
    """A file of a package that one of those requests names, and no other."""
    name = request.query_params.get("model")
    model = front.models.get(name) if name else front.models.default
    file = model.examples()[1].get(request.path_params["name"]) if model is not None and model.description else None
    if file is None:
        return _not_found("the package's example has no such file", request)
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    # The file may be HTML or SVG: it must not run as a page of this server.
    headers = PRIVATE | {"content-security-policy": "sandbox; default-src 'none'"}
    return FileResponse(file, headers=headers, media_type=kind)


async def progress_data(front: Front, request: Request) -> Response:
    """How far a request is, as its script last said; null where it has said nothing, or there is no such request."""
    name = request.path_params["name"]
    known = front.progress.of(name)
    if known is None and front.others is not None:
        known = await front.others.progress(name, front.listener)
    fraction, text = known if known is not None else (None, "")
    return _json({"progress": fraction, "text": text})


PRIVATE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


# For the status page


async def status_data(front: Front, request: Request) -> Response:
    """All that the status page shows, once; with `?model=NAME` of one model."""
    name = request.query_params.get("model", "")
    if name and front.models.get(name) is None:
        return _not_found("there is no such model", request)
    return _json(await front.live.look(name))


def status_events(front: Front, request: Request) -> Response:
    """Figures each second, for as long as the page is open; to HEAD, only that they would come."""
    name = request.query_params.get("model", "")
    if name and front.models.get(name) is None:
        return _not_found("there is no such model", request)
    if request.method == "HEAD":
        return Response(headers=PRIVATE, media_type="text/event-stream")
    return StreamingResponse(front.live.events(name), headers=PRIVATE, media_type="text/event-stream")


async def request_data(front: Front, request: Request) -> Response:
    """One of the recent requests, with its log lines."""
    row = await front.live.look_for(request.path_params["name"])
    return _json(row) if row is not None else _not_found("this is none of the last requests", request)


def reload_model(front: Front, request: Request) -> Response:
    """Load all models anew, or with `?model=NAME` one, while the old ones serve on.

    Where that is the right of another token, it is refused.
    """
    if front.access.is_controllable:
        return _forbidden("models of this server are loaded by /v2/repository, with the token of --admin", request)
    name = request.query_params.get("model", "")
    if name and front.models.get(name) is None:
        return _not_found("there is no such model", request)
    if not all(may_see(request, each) for each in ([name] if name else front.models.names)):
        return _forbidden("the key may not load all of these models anew", request)
    front.reload(name)
    return Response(status_code=202, headers=PRIVATE)


# Logging in


def is_known(front: Front, request: Request) -> Response:
    """Whether this browser has logged in."""
    known = not front.access.is_closed or front.sessions.find("GET", request.scope["headers"]) is not None
    return _json({"logged_in": known})


def log_in(front: Front, request: Request) -> Response:
    """Give a browser that has shown the token, or a key, a cookie in its place."""
    cookie = front.sessions.begin(request.scope["scheme"] == "https", request.scope.get("key_holder"))
    return Response(status_code=204, headers=PRIVATE | {"set-cookie": cookie})


def log_out(front: Front, request: Request) -> Response:
    cookie = front.sessions.end(request.scope["scheme"] == "https")
    return Response(status_code=204, headers=PRIVATE | {"set-cookie": cookie})


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value, default=plain), headers=PRIVATE, media_type="application/json")


def _forbidden(message: str, request: Request) -> Response:
    body = neutral_error(Fault(403, "forbidden", message), request.scope["request_id"].decode("latin-1")).body
    return Response(body, 403, headers=PRIVATE, media_type="application/json")


def _not_found(message: str, request: Request) -> Response:
    fault = Fault(404, "not_found", message)
    body = neutral_error(fault, request.scope["request_id"].decode("latin-1")).body
    return Response(body, 404, media_type="application/json")


ROUTES = (
    Page("/", ADMIN, playground),
    Page("/playground.json", ADMIN, playground_data),
    Page("/samples/{name}", ADMIN, sample),
    Page("/progress/{name}", ADMIN, progress_data),
    Page("/status", ADMIN, status),
    Page("/status.json", ADMIN, status_data),
    Page("/status/events", ADMIN, status_events),
    Page("/status/{name}", ADMIN, request_data),
    Page("/reload", ADMIN, reload_model, methods=("POST",)),
    Page("/pages/frame", PUBLIC, frame),
    Page("/pages/{name}", PUBLIC, asset),
    Page("/login", PUBLIC, is_known),
    Page("/login", ADMIN, log_in, methods=("POST",)),
    Page("/logout", PUBLIC, log_out, methods=("POST",)),
)
