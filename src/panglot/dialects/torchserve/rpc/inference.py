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
"""The codes of gRPC by statuses of HTTP, as in the original. Other 4xx are FAILED_PRECONDITION, other 5xx INTERNAL."""
INTERNAL_ERROR = "org.pytorch.serve.http.InternalServerException"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
NO_SEQUENCE = "no_sequence"
"""The code by which the worker refuses a message of StreamPredictions2 that names no sequence."""
ARCHIVE = "org.pytorch.serve.archive.model."


def error(fault: Fault) -> tuple[int, str]:
    """The status and the sentence: the message of HTTP and, in a second line, the class of the original's exception."""
    if fault.code == "no_model" and not (fault.details or {}).get("model"):
        return INTERNAL, "Parameter model_name is required.\nBadRequestException.()"
    if fault.code in ("no_model", "no_version"):
        return INTERNAL, unknown_model(fault)
    if fault.code == NO_SEQUENCE:
        return INTERNAL, f"{fault.message}\nBadRequestException.()"
    message = "Worker died." if fault.code in ("timeout", "worker_died") else fault.message
    other = FAILED_PRECONDITION if 400 <= fault.status < 500 else INTERNAL
    return STATUSES.get(fault.status, other), f"{message}\n{INTERNAL_ERROR}"


def unknown_model(fault: Fault) -> str:
    """The sentence for a model, or a version of it, that is not served."""
    details = fault.details or {}
    if fault.code == "no_model" and not details.get("model"):
        return f"{fault.message}\n{ARCHIVE}ModelNotFoundException"
    if fault.code == "no_model":
        return f"Model not found: {details.get('model', '')}\n{ARCHIVE}ModelNotFoundException"
    what = f"Model version: {details.get('version')} does not exist for model: {details.get('model')}"
    return f"{what}\n{ARCHIVE}ModelVersionNotFoundException"


def failure(code: int, sentence: str) -> bytes:
    """A PredictionResponse with a failure: a google.rpc.Status with an ErrorInfo, as in the original."""
    message, _, reason = sentence.rpartition("\n") if "\n" in sentence else (sentence, "", INTERNAL_ERROR)
    info = protobuf.text(1, ERROR_INFO) + protobuf.message(2, protobuf.text(1, reason))
    return protobuf.message(3, b"\x08" + protobuf.put(code) + protobuf.text(2, message) + protobuf.message(3, info))


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
        RpcMethod(
            "StreamPredictions2", "PredictionsRequest", "PredictionResponse", model_field=1, version_field=2,
            streams=True, lane="predict", failure=failure,
        ),
    ),
    messages={
        "PredictionsRequest": (
            "model_name 1 string", "model_version 2 string", "input 3 map bytes", "sequence_id 4 string",
        ),
        "PredictionResponse": ("prediction 1 bytes", "sequence_id 2 string", "status 3 Status"),
        "Status": ("code 1 int32", "message 2 string", "details 3 repeated Any"),
        "Any": ("type_url 1 string", "value 2 bytes"),
        "TorchServeHealthResponse": ("health 1 string",),
    },
    error=error,
)  # fmt: skip
