"""Multi-model endpoints: the routes by which the platform lets a container load, list and unload models."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine.call import Fault
from panglot.web.contract import ADMIN, AdminRoute, RouteRefused
from panglot.web.models import Model, ModelAdministration

MODELS, MODEL = "/models", "/models/{model}"


def _answer(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, indent=2), status, media_type="application/json")


def _described(model: Model) -> dict[str, str]:
    return {"modelName": model.name, "modelUrl": str(model.package.archive or model.package.root)}


def listed(models: ModelAdministration, request: Request) -> Response:
    """All models that are loaded."""
    return _answer({"models": [_described(model) for model in models.models()]})


def described(models: ModelAdministration, request: Request) -> Response:
    """One model, as the list has it."""
    return _answer(_described(models.find(request.path_params["model"])))


async def load(models: ModelAdministration, request: Request) -> Response:
    """Load the model that the body names. It comes from the server's folder: the address in the body is not fetched."""
    try:
        body = json.loads(await request.body())
        name = body["model_name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RouteRefused(Fault(400, "bad_request", 'the body must be {"model_name": ..., "url": ...}')) from None
    if any(model.name == name for model in models.models()):
        raise RouteRefused(Fault(409, "bad_request", f"Model {name} is already registered."))
    await models.load(str(name))
    return _answer({"status": f"Workers started for the model {name}"})


async def unload(models: ModelAdministration, request: Request) -> Response:
    name = request.path_params["model"]
    models.find(name)
    await models.unload(name)
    return _answer({"status": f'Model "{name}" unregistered'})


ROUTES = (
    AdminRoute(MODELS, listed, methods=("GET",)),
    AdminRoute(MODELS, load, methods=("POST",)),
    AdminRoute(MODEL, described, methods=("GET",), access=ADMIN),
    AdminRoute(MODEL, unload, methods=("DELETE",)),
)
