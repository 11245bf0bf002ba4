"""The HTTP contract of the platform's server: POST / and /predict, GET / and /health; errors as `{"error": "..."}`."""

from __future__ import annotations

from http import HTTPStatus

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import PUBLIC, Contract, ErrorAnswer, InferRoute, Page
from panglot.web.models import Model

TEXT = b"text/plain; charset=utf-8"


def contract(package: Package, settings: Settings) -> Contract:
    """The platform's routes; with Vertex AI's variables, only the two routes that these name."""
    vertex = package.options.get("vertex")
    inference, probes = ([vertex["predict"]], [vertex["health"]]) if vertex else (["/", "/predict"], ["/", "/health"])
    return Contract(
        routes=tuple(InferRoute(path, path) for path in inference),
        error=error,
        pages=tuple(Page(path, PUBLIC, health, unless="text/html" if path == "/" else "") for path in probes),
        unknown=unknown,
        metrics=metrics,
    )


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    # A script's message may have lone surrogates, which orjson refuses.
    message = fault.message.encode("utf-8", "replace").decode()
    return ErrorAnswer(fault.status, b"application/json", orjson.dumps({"error": message}))


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    return ErrorAnswer(fault.status, TEXT, HTTPStatus(fault.status).phrase.encode())


def health(model: Model, request: Request) -> Response:
    """`Ok`, once the handler is loaded. Before that, the platform's own server does not answer at all."""
    if model.engine.state in states.SERVING:
        return Response("Ok", media_type="text/plain")
    return Response("Not ready", 503, {"retry-after": "2"}, "text/plain")


def metrics(model: Model) -> str:
    """The platform's two gauges, with the numbers of the engine."""
    gauges: dict[str, float] = {}
    for name, _, _, value in model.engine.gauges():
        gauges[name] = gauges.get(name, 0) + value
    waiting = gauges.get("panglot_queue_length", 0)
    running = max(0, gauges.get("panglot_requests_in_progress", 0) - waiting)
    return f"inf_batch_current_size {running:g}\ninf_queue_size {waiting:g}\n"
