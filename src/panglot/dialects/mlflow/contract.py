"""MLflow's scoring server: POST /invocations, GET /ping, /health, /version; also routes of Databricks and Azure."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import PUBLIC, Contract, ErrorAnswer, InferRoute, ModelName, Page
from panglot.web.models import Model

JSON = b"application/json"
INVOCATIONS, SCORE = "/invocations", "/score"
CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    413: "BAD_REQUEST",
    422: "BAD_REQUEST",
    429: "REQUEST_LIMIT_EXCEEDED",
    501: "NOT_IMPLEMENTED",
    503: "TEMPORARILY_UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The platform's codes of errors, by status."""
DETAILS = {"not_found": "Not Found", "method_not_allowed": "Method Not Allowed"}
"""The sentences of the platform's web framework about paths."""
TOO_LATE = b"Request processing time exceeded limit"

ROUTES = (
    InferRoute(INVOCATIONS, INVOCATIONS),
    InferRoute(
        "/serving-endpoints/{name}/invocations",
        "/serving-endpoints/{name}/invocations",
        target=INVOCATIONS,
        model=ModelName(segment="name"),
    ),
    InferRoute(
        "/model/{name}/{version}/invocations",
        "/model/{name}/{version}/invocations",
        target=INVOCATIONS,
        model=ModelName(segment="name", version="version"),
    ),
    InferRoute(SCORE, SCORE),
)


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of the platform's server, of Databricks' endpoints and of Azure's endpoints without a script."""
    pages = (Page("/ping", PUBLIC, ping), Page("/health", PUBLIC, ping), Page("/version", PUBLIC, version))
    return Contract(routes=ROUTES, error=error, pages=pages, unknown=unknown)


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in the form of mlflow's exceptions; for a timeout, the text of the platform's server."""
    if fault.code == "timeout":
        return ErrorAnswer(504, JSON, TOO_LATE)
    code = CODES.get(fault.status, "INTERNAL_ERROR" if fault.status >= 500 else "BAD_REQUEST")
    body = json.dumps({"error_code": code, "message": fault.message})
    return ErrorAnswer(fault.status, JSON, body.encode())


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    if fault.code in DETAILS:
        return ErrorAnswer(
            fault.status, JSON, json.dumps({"detail": DETAILS[fault.code]}, separators=(",", ":")).encode()
        )
    return error(fault, request_id)


def ping(model: Model, request: Request) -> Response:
    """An empty line. The platform's own server does not answer before its model is loaded."""
    if model.engine.state in states.SERVING:
        return Response("\n", media_type="application/json")
    return Response("\n", 503, {"retry-after": "2"}, "application/json")


def version(model: Model, request: Request) -> Response:
    """The version of the mlflow that has loaded the model."""
    known = (model.description.get("api") or {}).get("platform", {}).get("version", "")
    if known:
        return Response(known, media_type="application/json")
    return Response("\n", 503, {"retry-after": "2"}, "application/json")
