"""TorchServe's inference API: /predictions, /explanations, the older paths, /ping; its management API and gRPC."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.torchserve import management, measurements
from panglot.dialects.torchserve.rpc.inference import SERVICE as INFERENCE_SERVICE
from panglot.dialects.torchserve.rpc.management import SERVICE as MANAGEMENT_SERVICE
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import (
    ADMIN,
    PUBLIC,
    AdminRoute,
    Contract,
    ErrorAnswer,
    InferRoute,
    Listener,
    ModelName,
)
from panglot.web.models import ModelAdministration

METHODS = ("POST", "GET", "PUT")
"""The original looks at no method."""
NAMED = ModelName(segment="model", version="version")
IN_QUERY = ModelName(query="model_name")
PREDICT, EXPLAIN, INVOKE = "/predictions", "/explanations", "/invocations"
PATHS = (
    ("/predictions/{model}", PREDICT, NAMED),
    ("/predictions/{model}/{version}", PREDICT, NAMED),
    ("/predictions/{model}/{version}/{url_path...}", PREDICT, NAMED),
    ("/explanations/{model}", EXPLAIN, NAMED),
    ("/explanations/{model}/{version}", EXPLAIN, NAMED),
    ("/invocations", INVOKE, IN_QUERY),
    ("/models/{model}/invoke", INVOKE, NAMED),
    ("/{model}/predict", INVOKE, NAMED),
    ("/v1/models/{model}:predict", PREDICT, NAMED),
    ("/v1/models/{model}:explain", EXPLAIN, NAMED),
)
"""Each path, the route that the worker gets for it, and where the path names the model."""
NOT_FOUND = "Requested resource is not found, please refer to API document."
NO_METHOD = "Requested method is not allowed, please refer to API document."
NO_WORKER = (
    'Model "{name}" has no worker to serve inference request. Please use scale workers API to add workers. '
    "If this is a sequence inference, please check if it is closed, or expired; or exceeds maxSequenceJobQueueSize"
)
KINDS = {
    "not_found": "ResourceNotFoundException",
    "no_model": "ModelNotFoundException",
    "no_version": "ModelVersionNotFoundException",
    "method_not_allowed": "MethodNotAllowedException",
    "unauthorized": "InvalidKeyException",
    "no_admin": "MethodNotAllowedException",
    "bad_request": "BadRequestException",
    **dict.fromkeys(("queue_full", "back_off", "loading", "waking", "memory"), "ServiceUnavailableException"),
}
"""The platform's classes of exceptions, by the codes of faults; others are its InternalServerException."""


def contract(package: Package, settings: Settings) -> Contract:
    """The inference API. The management API has the same port, or a further one."""
    options = package.options
    routes = [
        InferRoute(
            path, path, methods=METHODS, target=target, model=named, whole_head=True,
            lane="explain" if target == EXPLAIN else "predict",
        )
        for path, target, named in PATHS
    ]  # fmt: skip
    known = AdminRoute("/ping", ping, ("GET", "POST"), PUBLIC)
    described = AdminRoute("/api-description", description, ("GET",), PUBLIC)
    root = AdminRoute("/", description, ("OPTIONS",), ADMIN)
    error = error_writer(str(options["model_name"]))
    shared = {"error": error, "unknown": error}
    managed: Any = management.ROUTES
    port = int(options["management_port"] or 0)
    own = Contract(routes=(), admin=(*managed, known, described, root), **shared)
    return Contract(
        routes=tuple(routes),
        admin=(known, described, root, *(() if port else managed)),
        model_name=str(options["model_name"]),
        model_version=str(options["version"]),
        services=(INFERENCE_SERVICE, MANAGEMENT_SERVICE),
        metrics=measurements.metrics,
        listeners=(Listener(port, own, shared=True),) if port else (),
        **shared,
    )


# Errors


def error_writer(model: str) -> Any:
    """The function that writes a fault as the platform does, for the model of this name."""

    def error(fault: Fault, request_id: str) -> ErrorAnswer:
        status = fault.status
        if fault.code in ("timeout", "worker_died"):
            # The original ends the worker in both cases, and its answer tells of the worker alone.
            return _answer(500, "InternalServerException", "Worker died.")
        status = {"bad_result": 503, "no_admin": 405}.get(fault.code, status)
        details = fault.details or {}
        message = {
            "not_found": NOT_FOUND,
            "method_not_allowed": NO_METHOD,
            "no_model": f"Model not found: {details.get('model', '')}",
            "no_version": f"Model version: {details.get('version')} does not exist for model: {details.get('model')}",
            "queue_full": NO_WORKER.format(name=model),
            "back_off": NO_WORKER.format(name=model),
        }.get(fault.code, fault.message)
        if fault.code == "no_model" and not details.get("model"):
            message = fault.message
        kind = "ConflictStatusException" if status == 409 else KINDS.get(fault.code, "InternalServerException")
        return _answer(status, kind, message)

    return error


def _answer(status: int, kind: str, message: str) -> ErrorAnswer:
    body = json.dumps({"code": status, "type": kind, "message": message}, indent=2, ensure_ascii=False) + "\n"
    # A script's message may hold lone surrogates, which UTF-8 cannot.
    return ErrorAnswer(status, b"application/json", body.encode("utf-8", "replace"))


# What the front answers itself


def ping(administration: ModelAdministration, request: Request) -> Response:
    """Whether every model answers. A model whose worker is being replaced does: its requests wait for the next one."""
    well = all(management.is_well(model) for model in administration.models())
    return management.pretty({"status": "Healthy" if well else "Unhealthy"}, 200 if well else 500)


def description(administration: ModelAdministration, request: Request) -> Response:
    """The paths of the inference API, as OpenAPI 3.0.1; /openapi.json tells more."""
    answers = {"200": {"description": "the handler's answer"}}
    paths: dict[str, Any] = {path.replace("...", ""): {"post": {"responses": answers}} for path, _, _ in PATHS}
    paths["/ping"] = {"get": {"responses": {"200": {"description": "whether the models are well"}}}}
    paths["/"] = {"options": {"responses": {"200": {"description": "this description"}}}}
    about = {
        "title": "TorchServe APIs",
        "description": "see /openapi.json for what the models take",
        "version": "0.12.0",
    }
    return management.pretty({"openapi": "3.0.1", "info": about, "paths": paths})
