"""SageMaker's containers: POST /invocations, GET /ping, and the paths that the platform's own clients call."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.sagemaker import asynchronous, multi_model
from panglot.dialects.sagemaker.flavor import TENSORFLOW
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import PUBLIC, Contract, ErrorAnswer, InferRoute, ModelName, Page
from panglot.web.models import Model

JSON = b"application/json"
INVOCATIONS = "/invocations"
EXECUTION = "/execution-parameters"
ENDPOINTS = "/endpoints/{endpoint}/invocations"
INVOKE = "/models/{model}/invoke"
TARGET_MODEL = ModelName(header="x-amzn-sagemaker-target-model")
"""The header by which clients of a multi-model endpoint choose a model, by its name or the name of its archive."""
TYPES = {
    400: "BadRequestException",
    401: "UnauthorizedException",
    404: "ResourceNotFoundException",
    405: "MethodNotAllowedException",
    409: "ConflictStatusException",
    413: "RequestEntityTooLargeException",
    503: "ServiceUnavailableException",
    507: "InsufficientStorageException",
}
"""The names of statuses in the model server of the containers. All others are an InternalServerException."""
MESSAGES = {
    "not_found": "Requested resource is not found, please refer to API document.",
    "method_not_allowed": "Requested method is not allowed, please refer to API document.",
    "worker_died": "Worker died.",
    "queue_full": "No worker is available to serve request for model: %s. Consider increasing job queue size.",
}
"""The model server's sentences for faults, by their code."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of a container; `/execution-parameters` only where the script has them."""
    routes = [
        InferRoute(INVOCATIONS, INVOCATIONS, whole_head=True),
        InferRoute(ENDPOINTS, ENDPOINTS, target=INVOCATIONS, model=TARGET_MODEL, whole_head=True),
        asynchronous.route(TARGET_MODEL),
        InferRoute(INVOKE, INVOKE, target=INVOCATIONS, model=ModelName(segment="model"), whole_head=True),
    ]
    if package.options["execution_parameters"]:
        routes.append(InferRoute(EXECUTION, EXECUTION, methods=("GET",), without_body=True))
    error = Errors(package.name, package.options["flavor"])
    return Contract(
        routes=tuple(routes),
        error=error,
        pages=(Page("/ping", PUBLIC, ping),),
        admin=multi_model.ROUTES,
        unknown=error,
        model_name=f"{package.name}.tar.gz",
    )


class Errors:
    """Writes faults as the model server of a container does."""

    def __init__(self, model: str, flavor: str) -> None:
        self.model = model
        self.flavor = flavor

    def __call__(self, fault: Fault, request_id: str) -> ErrorAnswer:
        """The model server's JSON; the container of TensorFlow Serving has a form of its own."""
        status = 500 if fault.code == "timeout" else fault.status
        message = MESSAGES.get(fault.code, fault.message).replace("%s", self.model)
        if self.flavor == TENSORFLOW:
            return ErrorAnswer(status, JSON, _json({"error": message}))
        kind = TYPES.get(status, "InternalServerException")
        return ErrorAnswer(status, JSON, _json({"code": status, "type": kind, "message": message}))


def _json(value: object) -> bytes:
    # Indented, as the model server writes it. A script's message may have lone surrogates, which UTF-8 cannot encode.
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace")


def ping(model: Model, request: Request) -> Response:
    """Whether the model is loaded: the platform sends requests only after a 200."""
    if model.engine.state in states.SERVING:
        return Response(_json({"status": "Healthy"}), media_type="application/json")
    return Response(_json({"status": "Unhealthy"}), 500, {"retry-after": "2"}, "application/json")
