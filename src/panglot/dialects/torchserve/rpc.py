"""TorchServe's gRPC inference service: `org.pytorch.serve.grpc.inference.InferenceAPIsService`."""

from __future__ import annotations

import json
from typing import Any

from panglot.dialects.torchserve import management
from panglot.engine.call import Fault
from panglot.web.contract import PUBLIC, RpcMethod, RpcService
from panglot_worker.tensors import protobuf

INTERNAL, NOT_FOUND, EXHAUSTED, INVALID, DENIED = 13, 5, 8, 3, 16


def error(fault: Fault) -> tuple[int, str]:
    """The status and the sentence: those of HTTP, as the original has them."""
    if fault.code in ("no_model", "no_version"):
        details = fault.details or {}
        return NOT_FOUND, f"Model not found: {details.get('model', '')}"
    if fault.code in ("queue_full", "memory", "back_off", "loading", "waking", "too_many_connections"):
        return EXHAUSTED, fault.message
    if fault.code == "unauthorized":
        return DENIED, fault.message
    return (INVALID if fault.status in (400, 413) else INTERNAL), fault.message


def ping(model: Any, message: bytes) -> bytes:
    well = management.is_well(model)
    return protobuf.text(1, json.dumps({"status": "Healthy" if well else "Unhealthy"}, indent=2) + "\n")


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
