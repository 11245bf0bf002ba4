"""All routes that are not the script's, on one screen. Each declares who may call it."""

from __future__ import annotations

import time
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from panglot.engine import engine as states
from panglot.engine.call import Fault
from panglot.web.access import challenges
from panglot.web.contract import ADMIN, PUBLIC, ErrorWords, InferRoute, Page, neutral_error, v2_error
from panglot.web.front import ASGI, Front


def live(front: Front, request: Request) -> Response:
    return json_response({"live": True})


def ready(front: Front, request: Request) -> Response:
    state = front.engine.state
    if state == states.READY:
        return json_response({"ready": True})
    return json_response({"ready": False, "state": state}, 503, {"retry-after": "2"})


def metrics(front: Front, request: Request) -> Response:
    text = front.metrics.render(front.gauges(), front.contract.counters)
    if front.contract.metrics is not None:
        text += front.contract.metrics(front)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def openapi(front: Front, request: Request) -> Response:
    from panglot.web.openapi import document

    return json_response(document(front))


def docs(front: Front, request: Request) -> Response:
    from panglot.web.docs import page

    return page(front)


def docs_asset(front: Front, request: Request) -> Response:
    from panglot.web.docs import asset

    return asset(request.path_params["name"], request.scope["request_id"].decode("latin-1"))


def status_page(front: Front, request: Request) -> Response:
    from panglot.web.page import render
    from panglot.web.try_line import base_url

    base = base_url(request.scope["scheme"], request.headers.get("host", ""), request.scope["server"])
    return HTMLResponse(render(front, base), headers=PAGE_HEADERS)


PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

ROUTES = (
    Page("/v2/health/live", PUBLIC, live),
    Page("/v2/health/ready", PUBLIC, ready),
    Page("/metrics", ADMIN, metrics),
    Page("/openapi.json", ADMIN, openapi),
    Page("/docs", ADMIN, docs),
    Page("/docs/{name}", ADMIN, docs_asset),
    Page("/", ADMIN, status_page),
)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")


class App:
    """The ASGI app behind a front."""

    def __init__(self, front: Front) -> None:
        self.front = front
        pages = (*ROUTES, *front.contract.pages)
        self.exact = {page.path: page for page in pages if "{" not in page.path}
        front.public = frozenset(page.path.encode() for page in self.exact.values() if page.access == PUBLIC)
        self.patterns = [page for page in pages if "{" in page.path]
        self.neutral = {page.path: page for page in ROUTES}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        label, response = self._respond(scope)
        total = time.monotonic() - scope["began"]
        response.headers["x-request-id"] = scope["request_id"].decode("latin-1")
        response.headers["server-timing"] = f"total;dur={total * 1000:.3f}"
        if self.front.draining:
            response.headers["connection"] = "close"
        self.front.metrics.requests[label, response.status_code] += 1
        await response(scope, receive, send)

    def _respond(self, scope: Any) -> tuple[str, Response]:
        request_id = scope["request_id"].decode("latin-1")
        path, method = scope["path"], scope["method"]
        route, parameters = self._find(path)
        infer = self.front.infer_route(path.encode("utf-8", "replace"))
        if method == "OPTIONS" and self.front.origins:
            called = [
                one for one in (infer, self.front.asked_route(path.encode("utf-8", "replace"))) if one is not None
            ]
            if called:
                return called[0].name, self._preflight(dict(scope["headers"]).get(b"origin", b""), called)
        if route is None:
            asked = self.front.asked_route(path.encode("utf-8", "replace"))
            if infer is None and asked is not None:
                fault = Fault(405, "method_not_allowed", f"{path} takes GET")
                return asked.name, self._error(path, fault, request_id, "GET")
            if infer is not None:
                return infer.name, self._error(
                    path, Fault(405, "method_not_allowed", f"{path} takes POST"), request_id, "POST"
                )
            message = f"there is no such path; this server answers POST {self.front.contract.routes[0].path}"
            return "other", self._error(path, Fault(404, "not_found", message), request_id)
        if method not in ("GET", "HEAD"):
            allow = "GET" if infer is None else "GET, POST"
            fault = Fault(405, "method_not_allowed", f"{route.path} takes {allow}")
            return route.path, self._error(path, fault, request_id, allow)
        headers = dict(scope["headers"])
        if route.unless and route.unless.encode() in headers.get(b"accept", b""):
            route = self.neutral[route.path]
        if self.front.access.refuses(route.access, headers.get(b"authorization", b"")):
            fault = Fault(401, "unauthorized", "this server needs a token: Authorization: Bearer ...")
            response = self._error(path, fault, request_id)
            for challenge in challenges(route.access):
                response.headers.append("www-authenticate", challenge)
            return route.path, response
        request = Request({**scope, "path_params": parameters})
        return route.path, route.answer(self.front, request)

    def _preflight(self, origin: bytes, called: list[InferRoute]) -> Response:
        """A browser asks whether a page of this origin may call these routes."""
        headers = {name.decode(): value.decode("latin-1") for name, value in self.front.origins.grant(origin).items()}
        if self.front.origins.allow(origin):
            headers |= {
                "access-control-allow-methods": ", ".join(route.method for route in called),
                "access-control-allow-headers": "authorization, content-type, x-request-id, x-timeout-ms, traceparent",
                "access-control-max-age": "600",
            }
        return Response(status_code=204, headers=headers)

    def _find(self, path: str) -> tuple[Page | None, dict[str, str]]:
        if self.front.contract.fold_case:
            path = path.lower()
        found = self.exact.get(path)
        if found is not None:
            return found, {}
        for route in self.patterns:
            start = route.path.partition("{")[0]
            rest = path.removeprefix(start)
            if path.startswith(start) and rest and "/" not in rest:
                return route, {"name": rest}
        return None, {}

    def _error(self, path: str, fault: Fault, request_id: str, allow: str = "") -> Response:
        status, content_type, body = self._words(path)(fault, request_id)
        response = Response(body, status, {"content-type": content_type.decode()} if content_type else None)
        if allow:
            response.headers["allow"] = allow
        return response

    def _words(self, path: str) -> ErrorWords:
        """The platform's words for its own paths and for unknown ones, ours for the neutral routes."""
        if path.startswith("/v2/"):
            return v2_error
        neutral = self._find(path)[0] in ROUTES and self.front.infer_route(path.encode("utf-8", "replace")) is None
        return neutral_error if neutral else self.front.contract.unknown


def build(front: Front) -> ASGI:
    return App(front)
