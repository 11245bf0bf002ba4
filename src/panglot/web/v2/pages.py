"""The pages of the Open Inference Protocol over REST. Each declares who may request it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault
from panglot.web.contract import ADMIN, CONTROL, INFER, PUBLIC, Page, v2_error
from panglot.web.front import Front
from panglot.web.models import Model
from panglot.web.v2 import metadata
from panglot.web.v2.statistics import statistics


def server(front: Front, request: Request) -> Response:
    return _json(metadata.server())


def of_model(answer: Callable[[Front, Model], Any]) -> Callable[[Front, Request], Response]:
    """A page about the model in its path; without a version, about the newest."""

    def respond(front: Front, request: Request) -> Response:
        known = request.path_params
        try:
            value = answer(front, metadata.find(front.models, known["model"], known.get("version", "")))
        except metadata.Missing as missing:
            return _refusal(missing.fault)
        return value if isinstance(value, Response) else _json(value)

    return respond


def ready(front: Front, model: Model) -> Response:
    """The state of a model. Any client may request it, so it tells nothing else."""
    up = metadata.is_ready(model)
    return _json({"name": model.name, "ready": up}, 200 if up else 503)


async def every_statistics(front: Front, request: Request) -> Response:
    return _json({"model_stats": await asyncio.gather(*(statistics(front, model) for model in front.models))})


async def model_statistics(front: Front, request: Request) -> Response:
    known = request.path_params
    try:
        model = metadata.find(front.models, known["model"], known.get("version", ""))
    except metadata.Missing as missing:
        return _refusal(missing.fault)
    return _json({"model_stats": [await statistics(front, model)]})


async def index(front: Front, request: Request) -> Response:
    """All models; with a body that says so, only the models that are ready."""
    try:
        wanted = orjson.loads(await request.body() or b"{}")
    except ValueError:
        return _refusal(Fault(400, "bad_request", "the body is no JSON; it may be empty"))
    if not isinstance(wanted, dict) or not isinstance(wanted.get("ready", False), bool):
        return _refusal(Fault(400, "bad_request", 'the body may be {"ready": true}, or empty'))
    # What is wrong with a model is only for clients that may load models, and for development.
    given = request.headers.get("authorization", "").encode("latin-1")
    loads = front.access.is_controllable and front.access.opens(CONTROL, request.url.path, given)
    return _json(metadata.index(front.models, wanted.get("ready", False), why=loads or front.settings.dev))


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _refusal(fault: Fault) -> Response:
    answer = v2_error(fault, "")
    headers = {"retry-after": str(fault.retry_after)} if fault.retry_after else None
    return Response(answer.body, answer.status, headers, "application/json")


def _pages() -> tuple[Page, ...]:
    pages = [Page("/v2", INFER, server), Page("/v2/", INFER, server), Page("/v2/models/stats", ADMIN, every_statistics)]
    for start in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        pages += [
            Page(start, INFER, of_model(lambda front, model: metadata.metadata(front.models, model))),
            Page(f"{start}/ready", PUBLIC, of_model(ready)),
            Page(f"{start}/config", INFER, of_model(lambda front, model: metadata.config(model))),
            Page(f"{start}/stats", ADMIN, model_statistics),
        ]
    return (*pages, Page("/v2/repository/index", ADMIN, index, methods=("POST",)))


PAGES = _pages()
