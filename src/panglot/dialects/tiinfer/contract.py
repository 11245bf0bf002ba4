"""The HTTP contract of tiinfer, both generations: mosec's `/inference`, and `/v1/models/m` of the first."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.metrics.counters import Histogram, heading, wording
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import PUBLIC, Contract, ErrorAnswer, InferRoute, Page
from panglot.web.models import Model
from panglot_worker.line.wire import STAGES

TEXT = b"text/plain; charset=utf-8"
GATEWAY = "/tione"
"""The platform's gateway does not remove this from the path."""

SHUTTING_DOWN = "gracefully shutting down"
FAULTS = {
    "timeout": (408, "inference timeout"),
    "queue_full": (429, "too many request: task queue is full"),
    "body_too_large": (413, "request body is too large"),
    "draining": (503, SHUTTING_DOWN),
    "worker_died": (500, "inference internal error"),
}
"""The platform's own statuses and texts for faults, by their code."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes and pages of both generations, each also behind the path that the platform's gateway puts in front."""
    name = str(package.options["algorithm_name"])
    routes, pages = [], [Page("/", PUBLIC, greeting, unless="text/html")]
    for start in ("", GATEWAY):
        routes.append(InferRoute(f"{start}/inference", "/inference"))
        routes.append(InferRoute(f"{start}/v1/models/{name}:predict", "/v1/models/{name}:predict"))
        pages.append(Page(f"{start}/v1/models", PUBLIC, models))
        pages.append(Page(f"{start}/v1/models/{name}", PUBLIC, readiness))
    return Contract(
        routes=tuple(routes), error=error, pages=tuple(pages), unknown=error, metrics=metrics, refuses_in_drain=True
    )


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    status, text = FAULTS.get(fault.code, (fault.status, fault.message))
    return ErrorAnswer(status, TEXT, text.encode("utf-8", "backslashreplace"))


# Pages


def greeting(model: Model, request: Request) -> Response:
    """Whether the server lives, in the words that the platform's health checks look for."""
    text, status = (SHUTTING_DOWN, 503) if model.engine.state == states.DRAINING else ("MOSEC service", 200)
    return Response(text, status, media_type="text/plain")


def models(model: Model, request: Request) -> Response:
    return _json([model.package.options["algorithm_name"]])


def readiness(model: Model, request: Request) -> Response:
    ready = model.engine.state in states.SERVING
    return _json({"name": model.package.options["algorithm_name"], "ready": ready}, 200 if ready else 503)


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


# Metrics


def metrics(model: Model) -> str:
    """mosec's series, with the numbers of the engine."""
    space = str(model.package.options["namespace"])
    return "\n".join([*_throughput(model, space), *_durations(model, space), *_tasks(model, space)]) + "\n"


def _throughput(model: Model, space: str) -> Iterator[str]:
    name = f"{space}_throughput_total"
    yield from heading(name, "service inference endpoint throughput", "counter")
    endpoints = {route.name for route in model.contract.routes}
    for (route, status), count in sorted(model.metrics.requests.items()):
        if route in endpoints:
            yield f"{name}{wording({'code': str(status), 'endpoint': route})} {count}"


def _durations(model: Model, space: str) -> Iterator[str]:
    name = f"{space}_process_duration_second"
    yield from heading(name, "process duration for each connection in each stage", "histogram")
    total = Histogram()
    for histogram in model.metrics.latency.values():
        total.merge(histogram)
    for stage, histogram in (*zip(STAGES, model.metrics.stages, strict=True), ("total", total)):
        yield from _lines(histogram, name, {"stage": stage, "connection": "total"})
    name = f"{space}_batch_duration_second"
    yield from heading(name, "how long requests waited for their batch", "histogram")
    for pool, counted in model.metrics.pools.items():
        yield from _lines(counted.queue_time, name, {"stage": pool or "inference", "connection": "total"})
    name = f"{space}_batch_size"
    yield from heading(name, "batch size", "histogram")
    for pool, counted in model.metrics.pools.items():
        labels = {"stage": pool or "inference", "connection": "total"}
        yield from counted.batch_size.lines(name, labels, 0, 11, 1)


def _lines(histogram: Histogram, name: str, labels: dict[str, str]) -> Iterator[str]:
    return histogram.lines(name, labels, 10, 28, 1e-6)


def _tasks(model: Model, space: str) -> Iterator[str]:
    name = f"{space}_remaining_task"
    yield from heading(name, "remaining tasks for the whole service", "gauge")
    gauges = {gauge: value for gauge, _, _, value in model.engine.gauges()}
    yield f"{name} {gauges.get('panglot_requests_in_progress', 0):g}"
