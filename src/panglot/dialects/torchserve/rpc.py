"""TorchServe's gRPC inference service: `org.pytorch.serve.grpc.inference.InferenceAPIsService`."""

from __future__ import annotations

import json
from typing import Any

from panglot.dialects.torchserve import management
from panglot.engine.call import Fault
from panglot.web.contract import PUBLIC, RpcMethod, RpcService
from panglot_worker.tensors import protobuf

INTERNAL, FAILED_PRECONDITION = 13, 9
STATUSES = {
    400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 413: 8, 429: 8, 499: 1, 500: INTERNAL, 501: 12, 503: 14, 504: 4,
}  # fmt: skip
"""By statuses of HTTP, as the original has them; other 4xx are FAILED_PRECONDITION, other 5xx INTERNAL."""
INTERNAL_ERROR = "org.pytorch.serve.http.InternalServerException"
ARCHIVE = "org.pytorch.serve.archive.model."


def error(fault: Fault) -> tuple[int, str]:
    """The status and the sentence: the message of HTTP and, in a second line, the class of the original's exception."""
    details = fault.details or {}
    if fault.code == "no_model":
        if not details.get("model"):
            return INTERNAL, "Parameter model_name is required.\nBadRequestException.()"
        return INTERNAL, f"Model not found: {details['model']}\n{ARCHIVE}ModelNotFoundException"
    if fault.code == "no_version":
        what = f"Model version: {details.get('version')} does not exist for model: {details.get('model')}"
        return INTERNAL, f"{what}\n{ARCHIVE}ModelVersionNotFoundException"
    message = "Worker died." if fault.code in ("timeout", "worker_died") else fault.message
    other = FAILED_PRECONDITION if 400 <= fault.status < 500 else INTERNAL
    return STATUSES.get(fault.status, other), f"{message}\n{INTERNAL_ERROR}"


def ping(model: Any, message: bytes) -> bytes:
    well = management.is_well(model)
    return protobuf.text(1, json.dumps({"status": "Healthy" if well else "Unhealthy"}, indent=2))


SERVICE = RpcService(
    package="org.pytorch.serve.grpc.inference",
    name="InferenceAPIsService",
    methods=(
        RpcMethod("Ping", "google.protobuf.Empty", "TorchServeHealthResponse", access=PUBLIC, answer=ping),
        RpcMethod(
            "Predictions", "PredictionsRequest", "PredictionResponse", model_field=1, version_field=2, lane="predict"
        ),
        RpcMethod(
            "StreamPredictions", "PredictionsRequest", "PredictionResponse", model_field=1, version_field=2,
            streams=True, lane="predict",
        ),
    ),
    messages={
        "PredictionsRequest": (
            "model_name 1 string", "model_version 2 string", "input 3 map bytes", "sequence_id 4 string",
        ),
        "PredictionResponse": ("prediction 1 bytes", "sequence_id 2 string"),
        "TorchServeHealthResponse": ("health 1 string",),
    },
    error=error,
)  # fmt: skip
