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
    from panglot.web.base_url import base_url
    from panglot.web.status_page import render

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
        """The response to a request that is not for the script, and the label it is counted under."""
        request_id = scope["request_id"].decode("latin-1")
        path, method, headers = scope["path"], scope["method"], dict(scope["headers"])
        page, parameters = self._find(path)
        called = self._script_routes(path)
        if method == "OPTIONS" and self.front.origins and called:
            return called[0].name, self._preflight(headers.get(b"origin", b""), called)
        if page is None:
            return self._no_page(path, request_id, called)
        if method not in ("GET", "HEAD"):
            allow = "GET, POST" if self.front.infer_route(path.encode("utf-8", "replace")) else "GET"
            fault = Fault(405, "method_not_allowed", f"{page.path} takes {allow}")
            return page.path, self._error(path, fault, request_id, allow)
        if page.unless and page.unless.encode() in headers.get(b"accept", b""):
            page = self.neutral[page.path]
        if self.front.access.refuses(page.access, headers.get(b"authorization", b"")):
            fault = Fault(401, "unauthorized", "this server needs a token: Authorization: Bearer ...")
            response = self._error(path, fault, request_id)
            for challenge in challenges(page.access):
                response.headers.append("www-authenticate", challenge)
            return page.path, response
        request = Request({**scope, "path_params": parameters})
        return page.path, page.answer(self.front, request)

    def _script_routes(self, path: str) -> list[InferRoute]:
        """The script's routes at a path, for POST and for GET."""
        raw = path.encode("utf-8", "replace")
        return [route for route in (self.front.infer_route(raw), self.front.get_route(raw)) if route is not None]

    def _no_page(self, path: str, request_id: str, called: list[InferRoute]) -> tuple[str, Response]:
        """405 where the script answers this path by another method, else 404."""
        if called:
            allow = called[0].method
            fault = Fault(405, "method_not_allowed", f"{path} takes {allow}")
            return called[0].name, self._error(path, fault, request_id, allow)
        message = f"there is no such path; this server answers POST {self.front.contract.routes[0].path}"
        return "other", self._error(path, Fault(404, "not_found", message), request_id)

    def _preflight(self, origin: bytes, called: list[InferRoute]) -> Response:
        """Tell a browser whether a page of this origin may call these routes."""
        headers = {name.decode(): value.decode("latin-1") for name, value in self.front.origins.grant(origin).items()}
        if self.front.origins.allow(origin):
            headers |= {
                "access-control-allow-methods": ", ".join(route.method for route in called),
                "access-control-allow-headers": "authorization, content-type, x-request-id, x-timeout-ms, traceparent",
                "access-control-max-age": "600",
            }
        return Response(status_code=204, headers=headers)

    def _find(self, path: str) -> tuple[Page | None, dict[str, str]]:
        """The page at a path, and what its pattern captures."""
        if self.front.contract.fold_case:
            path = path.lower()
        exact = self.exact.get(path)
        if exact is not None:
            return exact, {}
        for page in self.patterns:
            start = page.path.partition("{")[0]
            rest = path.removeprefix(start)
            if path.startswith(start) and rest and "/" not in rest:
                return page, {"name": rest}
        return None, {}

    def _error(self, path: str, fault: Fault, request_id: str, allow: str = "") -> Response:
        status, content_type, body = self._words(path)(fault, request_id)
        response = Response(body, status, {"content-type": content_type.decode()} if content_type else None)
        if allow:
            response.headers["allow"] = allow
        return response

    def _words(self, path: str) -> ErrorWords:
        """What words an error on this path: the platform on its own and on unknown paths, we on the neutral routes."""
        if path.startswith("/v2/"):
            return v2_error
        neutral = self._find(path)[0] in ROUTES and self.front.infer_route(path.encode("utf-8", "replace")) is None
        return neutral_error if neutral else self.front.contract.unknown


def build(front: Front) -> ASGI:
    return App(front)
