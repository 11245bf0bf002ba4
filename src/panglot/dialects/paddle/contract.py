"""Paddle: POST /predict, and the pipeline contract of Paddle Serving, POST /{name}/prediction."""

from __future__ import annotations

import json
import re

from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import Contract, ErrorAnswer, InferRoute, neutral_error

NUMBERS = {"timeout": 6000, "bad_request": 5000, "body_too_large": 5000, "poisonous": 5000}
"""Paddle Serving's error numbers by fault; 10000 for all others."""
AS_200 = ("timeout", "bad_request", "script_error", "bad_result", "worker_died")
"""Faults that the platform answers with 200 and an error number."""


TEXTS = {"type": "array", "items": {"type": "string"}}
REQUEST = {
    "type": "object",
    "description": "Names and values of the script's inputs; files as base64.",
    "properties": {"key": TEXTS, "value": TEXTS},
    "required": ["key", "value"],
}
RESPONSE = {
    "type": "object",
    "description": "Names and values of the result as text; err_no is 0, or says what went wrong.",
    "properties": {
        "err_no": {"type": "integer"},
        "err_msg": {"type": "string"},
        "key": TEXTS,
        "value": TEXTS,
        "tensors": {"type": "array", "items": {}},
    },
    "required": ["err_no", "err_msg", "key", "value", "tensors"],
}


def contract(package: Package, settings: Settings) -> Contract:
    named = [re.sub(r"[^A-Za-z0-9._~-]", "-", name) for name in package.options.get("operations", ())]
    routes = [_serving(f"/{name}/prediction") for name in dict.fromkeys(named)]
    if not routes:
        routes = [_serving("/{name}/prediction")]
    return Contract(routes=(InferRoute("/predict", "/predict"), *routes), error=neutral_error)


def _serving(path: str) -> InferRoute:
    return InferRoute(path, "/{name}/prediction", error=serving_error, request=REQUEST, response=RESPONSE)


def serving_error(fault: Fault, request_id: str) -> ErrorAnswer:
    """Word a fault as Paddle Serving does: numbered, and 200 where its pipelines answer 200."""
    answer = {
        "err_no": NUMBERS.get(fault.code, 10000),
        "err_msg": fault.message,
        "key": [],
        "value": [],
        "tensors": [],
    }
    status = 200 if fault.code in AS_200 else fault.status
    return ErrorAnswer(status, b"application/json", json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
