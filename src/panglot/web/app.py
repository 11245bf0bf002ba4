"""All routes that are not the script's, on one screen. Each declares who may call it."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.metrics.counters import Metrics
from panglot.terminal.text import visible
from panglot.web.access.keys import KeyHolder, Wanted
from panglot.web.access.reached_models import reached_by
from panglot.web.access.tokens import FOR_BROWSERS
from panglot.web.contract import (
    ADMIN,
    CONTROL,
    METRICS,
    PUBLIC,
    AdminRoute,
    ErrorWriter,
    Page,
    RouteRefused,
    neutral_error,
    v2_error,
)
from panglot.web.front import ASGI, Front
from panglot.web.jobs import pages as job_pages
from panglot.web.measured import own_metrics
from panglot.web.models import Model, Models, NamedModels
from panglot.web.pages import routes as pages
from panglot.web.pages.admission import refusal_of
from panglot.web.pages.language import language_of, wanted
from panglot.web.path_template import PathTemplate, is_template, template
from panglot.web.paths import Destination, Headers, model_named, unknown_model
from panglot.web.v2 import metadata, repository
from panglot.web.v2 import pages as v2_pages


def live(front: Front, request: Request) -> Response:
    return json_response({"live": True})


def ready(front: Front, request: Request) -> Response:
    """Whether requests are answered now. Of several models one that fails later on does not make the server unready."""
    state = states.DRAINING if front.draining else metadata.state(front.models)
    if state == states.READY and not front.others_ready():
        state = states.LOADING
    if state == states.READY:
        return json_response({"ready": True})
    return json_response({"ready": False, "state": state}, 503, {"retry-after": "2"})


async def metrics(front: Front, request: Request) -> Response:
    """The counters of all models; where there may be several, each with its name and version."""
    name = request.path_params.get("model", "")
    text = own_metrics(front, name)
    if front.others is not None:
        text = await front.others.metrics(text, front.listener, name)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def openapi(front: Front, request: Request) -> Response:
    from panglot.web.documents.openapi import document

    model = _shown(front, request)
    if model is not None and (len(front.models) == 1 or "model" in request.path_params):
        return json_response(document(front, [("", model)], request.url.path.removesuffix("/openapi.json")))
    return json_response(document(front, [(start.decode(), model) for start, model in front.paths.starts]))


def docs(front: Front, request: Request) -> Response:
    from panglot.web.pages.swagger import page

    return page(front, pages.chosen(front, request), language_of(request))


def docs_asset(front: Front, request: Request) -> Response:
    from panglot.web.pages.swagger import asset

    return asset(request.path_params["name"], request.scope["request_id"].decode("latin-1"))


def _shown(front: Front, request: Request) -> Model | None:
    """The model that a page is about: the one its path names, else the default."""
    name = request.path_params.get("model")
    return front.models.default if name is None else front.models.get(name)


OF_MODEL = "/models/{model}"
"""The path of a model's own page, which its other paths begin with."""
MOST_PATHS = 8
"""How many paths a 404 lists."""

ROUTES = (
    Page("/v2/health/live", PUBLIC, live),
    Page("/v2/health/ready", PUBLIC, ready),
    *v2_pages.PAGES,
    *repository.PAGES,
    Page("/metrics", METRICS, metrics),
    Page("/openapi.json", ADMIN, openapi),
    Page("/docs", ADMIN, docs),
    Page("/docs/{name}", ADMIN, docs_asset),
    *pages.ROUTES,
    *job_pages.PAGES,
    Page(OF_MODEL, ADMIN, pages.model_page),
    Page(f"{OF_MODEL}/docs", ADMIN, functools.partial(pages.model_page, path="docs")),
    Page(f"{OF_MODEL}/status", ADMIN, functools.partial(pages.model_page, path="status")),
    Page(f"{OF_MODEL}/openapi.json", ADMIN, openapi),
    Page(f"{OF_MODEL}/metrics", METRICS, metrics),
)

ALLOWED_HEADERS = (
    "authorization, content-type, content-encoding, inference-header-content-length, x-request-id, x-timeout-ms, "
    "traceparent, prefer"
)
"""What pages of other origins may send."""


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")


class PlacedPage(NamedTuple):
    """A page and its subject: a model where the page is its platform's, else the front."""

    page: Page
    subject: Front | Model
    named: NamedModels[Model] | None = None
    """Of a page that several models share: the one that a request names."""
    of_all: bool = False
    """Whether it is about all models of a dialect; the subject is one of them, whose platform words refusals."""

    def about(self, parameters: dict[str, str], query: bytes, headers: Headers) -> PlacedPage | None:
        """The page about the model that a request names; None where there is no such model."""
        if self.named is None:
            return self
        model = self.named.find(*self.named_in(parameters, query, headers))
        return self._replace(subject=model) if model is not None else None

    def named_in(self, parameters: dict[str, str], query: bytes, headers: Headers) -> tuple[str, str]:
        """The name and version of the model that a request names."""
        values = {name: value.encode("utf-8", "replace") for name, value in parameters.items()}
        return model_named(self.page.model, values, query, ())


Found = list[tuple[PlacedPage, dict[str, str]]]
"""The pages at one path, each with what its path captures."""


class App:
    """The ASGI app behind a front."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.neutral: dict[str, Page] = {}
        self.exact: dict[str, dict[str, PlacedPage]] = {}
        """Pages by path and method."""
        self.patterns: list[tuple[PathTemplate, PlacedPage]] = []
        self._place()
        # After the front's own watcher, which replaces the paths: these here get their pages from `_place`.
        front.models.watch(self._place)

    def _place(self) -> None:
        """Place every page by its path: later ones replace earlier ones. At the root the default model's win."""
        ours = (*ROUTES, *pages.of_dialect(self.front))
        self.neutral = {page.path: page for page in ours if "GET" in page.methods}
        placed = [PlacedPage(page, self.front) for page in ours]
        platforms = self._administrating(by_default=False)
        platforms += [
            PlacedPage(_behind(start, page), model, _alone(model) if page.model else None)
            for start, model in reversed(self.front.paths.starts)
            for page in model.contract.pages
            if start or page.model is None
        ]
        platforms += [*_shared(self.front.models), *self._administrating(by_default=True)]
        self.exact = {}
        for entry in (*placed, *platforms):
            if not is_template(entry.page.path):
                for method in entry.page.methods:
                    self.exact.setdefault(entry.page.path, {})[method] = entry
        free = [entry for entry in (*reversed(platforms), *placed) if is_template(entry.page.path)]
        patterns = [(template(entry.page.path), entry) for entry in free]
        self.patterns = sorted(patterns, key=lambda pattern: pattern[0].fixed, reverse=True)
        gets = (entries["GET"].page for entries in self.exact.values() if "GET" in entries)
        self.front.public = frozenset(page.path.encode() for page in gets if page.access == PUBLIC)
        self.front.paths.pages = tuple(
            (template(entry.page.path), entry.page.methods) for entry in (*placed, *platforms)
        )

    def _administrating(self, *, by_default: bool) -> list[PlacedPage]:
        """The routes at the root that administer models: those of the default model, or of all others."""
        models = [model for model in self.front.models if (model is self.front.models.default) is by_default]
        routes = [(model, route) for model in models for route in model.contract.admin]
        return [PlacedPage(self._as_page(model, route), model, of_all=True) for model, route in routes]

    def _as_page(self, model: Model, route: AdminRoute) -> Page:
        def answer(subject: Any, request: Request) -> Response | Awaitable[Response]:
            if self.front.administration is None:
                raise RouteRefused(repository.OFF)
            administration = self.front.administration(model.package.dialect)
            return route.answer(reached_by(request.scope.get("key_holder"), administration), request)

        return Page(route.path, route.access, answer, methods=route.methods)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        finally:
            # Set once the request has been counted in.
            holder: KeyHolder | None = scope.get("key_holder")
            if holder is not None:
                holder.release()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        counted, label, response = await self._respond(scope, receive)
        total = time.monotonic() - scope["began"]
        response.headers["x-request-id"] = scope["request_id"].decode("latin-1")
        response.headers["server-timing"] = f"total;dur={total * 1000:.3f}"
        for name, value in scope.get("limits", {}).items():
            response.headers[name.decode()] = value.decode()
        if self.front.draining:
            response.headers["connection"] = "close"
        counted.requests[label, response.status_code] += 1
        await response(scope, receive, send)

    async def _respond(self, scope: Any, receive: Any) -> tuple[Metrics, str, Response]:
        """The response to a request that is not for the script, behind the metrics and the label that count it."""
        request_id = scope["request_id"].decode("latin-1")
        path, method, headers = scope["path"], scope["method"], dict(scope["headers"])
        query = scope["query_string"]
        candidates = self._find(path)
        called = self.front.paths.at(path.encode("utf-8", "replace"), query)
        if method == "OPTIONS" and self.front.origins and called:
            first = next(iter(called.values()))
            return first.model.metrics, first.route.name, self._preflight(headers.get(b"origin", b""), called)
        missing = self.front.paths.missing(method.encode(), path.encode("utf-8", "replace"), query, scope["headers"])
        if missing is not None:
            written = self._written(missing.model.contract.unknown, missing.fault, request_id)
            return self.front.metrics, "other", written
        if not candidates:
            return self._no_page(path, request_id, called)
        wanted = "GET" if method == "HEAD" else method
        placed, parameters = next(
            (candidate for candidate in candidates if wanted in candidate[0].page.methods), candidates[0]
        )
        page, subject = placed.page, placed.subject
        if page.path.startswith(OF_MODEL) and subject is self.front and not self.front.models.get(parameters["model"]):
            return self._no_page(path, request_id, called)
        if wanted not in page.methods:
            # Our page stands at a path that a model would answer, if it were there: then 404 tells more than 405.
            absent = self._absent(path) if "model" in parameters or path == "/" else None
            if absent is not None:
                return self.front.metrics, "other", self._error(path, absent, request_id)
            allow = _allowed([*(method for entry, _ in candidates for method in entry.page.methods), *called])
            fault = Fault(405, "method_not_allowed", f"{page.path} takes {allow}")
            return subject.metrics, page.path, self._error(path, fault, request_id, allow)
        about = placed.about(parameters, query, headers.items())
        if about is None and isinstance(subject, Model):
            fault = unknown_model(self.front.models, *placed.named_in(parameters, query, headers.items()))
            return subject.metrics, page.path, self._written(subject.contract.unknown, fault, request_id)
        subject = about.subject if about is not None else subject
        if page.unless and page.unless.encode() in headers.get(b"accept", b""):
            page = self.neutral.get(page.path, self.neutral[OF_MODEL])
            parameters, subject = {"model": subject.name} if isinstance(subject, Model) else {}, self.front
        if page.access == CONTROL and not self.front.access.is_controllable:
            return subject.metrics, page.path, self._refused(subject, path, repository.OFF, request_id)
        model = subject.name if isinstance(subject, Model) else parameters.get("model", "")
        # For a key, these routes know only the models that it reaches.
        model = "" if placed.of_all else model
        forms = subject.contract.token_forms if isinstance(subject, Model) else ()
        refusal = refusal_of(self.front, scope, Wanted(page.access, path, model), forms)
        if refusal is not None and refusal.status == 401:
            return subject.metrics, page.path, self._unauthorized(path, page, refusal, headers, request_id)
        if refusal is not None:
            return subject.metrics, page.path, self._error(path, refusal, request_id)
        try:
            answer = page.answer(subject, Request({**scope, "path_params": parameters}, receive))
            return subject.metrics, page.path, await answer if isinstance(answer, Awaitable) else answer
        except RouteRefused as refused:
            return subject.metrics, page.path, self._refused(subject, path, refused.fault, request_id)

    def _refused(self, subject: Model | Front, path: str, fault: Fault, request_id: str) -> Response:
        """The answer to a refused request in the words of the page's platform, which need not be the default's."""
        if isinstance(subject, Model):
            return self._written(subject.contract.unknown, fault, request_id)
        return self._error(path, fault, request_id)

    def _unauthorized(
        self, path: str, page: Page, fault: Fault, headers: Mapping[bytes, bytes], request_id: str
    ) -> Response:
        """401; for a browser that opens a page, with a form for the token."""
        can_log_in = self.front.access.is_closed and page.access in FOR_BROWSERS and "GET" in page.methods
        if can_log_in and b"text/html" in headers.get(b"accept", b""):
            return pages.login_page(self.front, wanted(headers.get(b"accept-language", b"").decode("latin-1")))
        response = self._error(path, fault, request_id)
        response.headers["www-authenticate"] = "Bearer"
        return response

    def _no_page(self, path: str, request_id: str, called: dict[str, Destination]) -> tuple[Metrics, str, Response]:
        """405 where a script answers this path by another method, else 404."""
        if called:
            first, allow = next(iter(called.values())), _allowed(called)
            fault = Fault(405, "method_not_allowed", f"{path} takes {allow}")
            return first.model.metrics, first.route.name, self._error(path, fault, request_id, allow)
        absent = self._absent(path) or metadata.nowhere(self.front.models, path)
        fault = absent or Fault(404, "not_found", self._missing(path))
        return self.front.metrics, "other", self._error(path, fault, request_id)

    def _absent(self, path: str) -> Fault | None:
        """Why a path has no answer, where the model that would give it is not there, or not yet.

        At the root that is the default model: while it is gone, its paths are unknown.
        """
        models = self.front.models
        if path.startswith("/v2/"):
            return metadata.unknown(models, path)
        if path.startswith("/models/"):
            name = path.removeprefix("/models/").partition("/")[0]
            missing = f"there is no model '{visible(name)[:128]}'; this server has {', '.join(models.names) or 'none'}"
        else:
            name = models.default_name
            missing = f"the default model, '{visible(name)}', is not loaded"
        if not name or models.get(name) is not None:
            return None
        return metadata.is_loading(visible(name)) if name in models.loading() else Fault(404, "not_found", missing)

    def _missing(self, path: str) -> str:
        """The paths there are, for a client that requested another one."""
        models = self.front.models
        start, model = self._area(path)
        if model is None:
            return f"there is no such path; this server answers POST /models/NAME/... for {', '.join(models.names)}"
        posts = [route for route in model.contract.routes if "POST" in route.methods]
        paths = [start + route.path for route in posts if not route.is_free] or [start + route.path for route in posts]
        if not paths:
            return f"there is no such path; see {start}/openapi.json"
        known = ", ".join(paths[:MOST_PATHS])
        return f"there is no such path; this server answers POST {known}{' ...' if len(paths) > MOST_PATHS else ''}"

    def _area(self, path: str) -> tuple[str, Model | None]:
        """The model whose paths begin like this one, and how they begin."""
        parts = path.split("/", 3)
        model = self.front.models.get(parts[2]) if len(parts) > 2 and parts[1] == "models" else None
        return (f"/models/{parts[2]}", model) if model is not None else ("", self.front.models.default)

    def _preflight(self, origin: bytes, called: dict[str, Destination]) -> Response:
        """Tell a browser whether a page of this origin may call these routes."""
        headers = {name.decode(): value.decode("latin-1") for name, value in self.front.origins.grant(origin).items()}
        if self.front.origins.allow(origin):
            contracts = (destination.model.contract for destination in called.values())
            carriers = {name.decode() for contract in contracts for name in contract.token_headers}
            headers |= {
                "access-control-allow-methods": ", ".join(called),
                "access-control-allow-headers": ", ".join((ALLOWED_HEADERS, *sorted(carriers))),
                "access-control-max-age": "600",
            }
        return Response(status_code=204, headers=headers)

    def _find(self, path: str) -> Found:
        """The pages at a path."""
        default = self.front.models.default
        if default is not None and default.contract.fold_case and not path.startswith(("/models/", "/v2/")):
            path = path.lower()
        candidates: Found = [(placed, {}) for placed in self.exact.get(path, {}).values()]
        if not candidates:
            raw = path.encode("utf-8", "replace")
            matches = ((pattern.match(raw), placed) for pattern, placed in self.patterns)
            candidates = [(placed, _texts(values)) for values, placed in matches if values is not None]
        return candidates

    def _error(self, path: str, fault: Fault, request_id: str, allow: str = "") -> Response:
        return self._written(self._error_writer(path), fault, request_id, allow)

    @staticmethod
    def _written(write: ErrorWriter, fault: Fault, request_id: str, allow: str = "") -> Response:
        answer = write(fault, request_id)
        kind = {"content-type": answer.content_type.decode()} if answer.content_type else None
        response = Response(answer.body, answer.status, kind)
        for line in answer.headers:
            name, _, value = line.decode("latin-1").partition(": ")
            response.headers[name] = value
        if allow:
            response.headers["allow"] = allow
        if fault.retry_after:
            response.headers["retry-after"] = str(fault.retry_after)
        return response

    def _error_writer(self, path: str) -> ErrorWriter:
        """The writer of errors on a path: the platform's on its own and on unknown paths, ours on neutral routes."""
        script = next(iter(self.front.paths.at(path.encode("utf-8", "replace")).values()), None)
        if script is not None and script.tensors is None:
            return script.model.contract.unknown
        if path == "/v2" or path.startswith("/v2/"):
            return v2_error
        neutral = any(placed.page in ROUTES for placed, _ in self._find(path))
        model = self._area(path)[1] or self._of_one_platform()
        return neutral_error if model is None or neutral else model.contract.unknown

    def _of_one_platform(self) -> Model | None:
        """A model of the server, where all are of one platform: its clients know no other form of errors."""
        models = list(self.front.models)
        return models[0] if len({model.package.dialect for model in models}) == 1 else None


def _texts(values: Mapping[str, bytes]) -> dict[str, str]:
    return {name: value.decode("utf-8", "replace") for name, value in values.items()}


def _allowed(methods: Iterable[str]) -> str:
    """The methods of a path as the header Allow lists them."""
    return ", ".join(dict.fromkeys(methods))


def _alone(model: Model) -> NamedModels[Model]:
    """What a page behind a model's own path is about, whose requests name that model once more."""
    named: NamedModels[Model] = NamedModels()
    named.add(model, model, model.names, True)
    return named


def _shared(models: Models) -> list[PlacedPage]:
    """The pages at the root whose requests name their model, with all models that have them; the default's win."""
    shared: dict[tuple[str, tuple[str, ...]], PlacedPage] = {}
    default = models.default
    for model in (*filter(None, [default]), *models):
        for page in model.contract.pages:
            if page.model is not None:
                entry = shared.setdefault((page.path, page.methods), PlacedPage(page, model, NamedModels()))
                if entry.named is not None:
                    entry.named.add(model, model, models.names_leading_to(model), model is default)
    return list(reversed(shared.values()))


def _behind(start: bytes, page: Page) -> Page:
    """A page of a platform behind the path of its model."""
    return dataclasses.replace(page, path=start.decode() + page.path) if start else page


def build(front: Front) -> ASGI:
    return App(front)
