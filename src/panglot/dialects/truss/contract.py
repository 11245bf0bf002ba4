"""The HTTP contract of Truss's server: POST /v1/models/NAME:predict and its aliases, the OpenAI methods, its probes."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from panglot.dialects.truss import asynchronous
from panglot.dialects.truss.model_class import OPENAI, openai_paths
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import INFER, PUBLIC, Contract, ErrorAnswer, InferRoute, Page, TokenForm
from panglot.web.models import Model

JSON = b"application/json"
PREDICT = "/v1/models/model:predict"
READY = "/v1/models/{model}"
ALIASES = (
    "/v1/models/{model}:predict", "/v1/models/{model}:predict_binary", "/invocations", "/predict",
    "/production/predict", "/development/predict", "/deployment/{deployment}/predict",
    "/environments/{environment}/predict",
)  # fmt: skip
"""Further paths of predict: of the platform's server, and of its hosted models."""
CLIENT, MODEL, SERVER = 700, 600, 500
"""The platform's codes for the cause of an error: the client, the model, or the server."""
NOT_READY = "Model with name model is not ready."
FAILED = "Internal Server Error (in model/chainlet)."
OF_MODEL = {
    "loading": NOT_READY, "waking": NOT_READY, "script_error": FAILED, "worker_died": FAILED, "bad_reply": FAILED,
}  # fmt: skip
"""The platform's sentences for faults, by their code."""


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of the platform's server, and of its hosted models."""
    options = package.options
    whole = bool(options["reads_head"])
    routes = [InferRoute(PREDICT, "predict", whole_head=whole)]
    routes += [InferRoute(path, "predict", target=PREDICT, whole_head=whole) for path in ALIASES]
    routes += asynchronous.routes(whole)
    pages = [
        Page("/", PUBLIC, alive, unless="text/html"),
        Page("/ping", PUBLIC, loaded),
        Page(READY + "/loaded", PUBLIC, loaded),
        Page(READY + "/schema", INFER, schema),
        asynchronous.PAGE,
    ]
    for method, path in OPENAI.items():
        if method in options["methods"]:
            routes += [InferRoute(each, method, target=path, whole_head=True) for each in openai_paths(method)]
        else:
            pages.append(Page(path, INFER, missing, methods=("POST",)))
    if "is_healthy" in options["methods"]:
        routes.append(InferRoute(READY, "is_healthy", PUBLIC, ("GET",), without_body=True))
    else:
        pages.append(Page(READY, PUBLIC, loaded))
    return Contract(
        routes=tuple(routes),
        error=error,
        pages=tuple(pages),
        unknown=unknown,
        token_forms=(TokenForm("Api-Key"),),
        id_header=b"x-baseten-request-id",
    )


# Errors


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault as the platform's server answers it, with the code of its cause."""
    code = SERVER if fault.code in ("bad_result", "internal_error") else MODEL if fault.status >= 500 else CLIENT
    return ErrorAnswer(fault.status, JSON, _text(OF_MODEL.get(fault.code, fault.message)), tuple(_lines(code)))


def unknown(fault: Fault, request_id: str) -> ErrorAnswer:
    phrase = "Method Not Allowed" if fault.status == 405 else "Not Found" if fault.status == 404 else fault.message
    return ErrorAnswer(fault.status, JSON, json.dumps({"detail": phrase}, separators=(",", ":")).encode())


def _text(message: str) -> bytes:
    text = json.dumps({"error": message}, ensure_ascii=False, separators=(",", ":"))
    # A script's message may have lone surrogates, which UTF-8 cannot encode.
    return text.encode("utf-8", "replace")


def _lines(code: int) -> list[bytes]:
    return [b"x-baseten-error-source: 04", b"x-baseten-error-code: %d" % code]


def _refusal(status: int, message: str, code: int, **headers: str) -> Response:
    lines = (line.decode().partition(": ") for line in _lines(code))
    own = {name: value for name, _, value in lines}
    return Response(_text(message), status, {**own, **headers}, "application/json")


# Pages


def alive(model: Model, request: Request) -> Response:
    return Response("true", media_type="application/json")


def loaded(model: Model, request: Request) -> Response:
    if model.engine.state in states.SERVING:
        return Response("{}", media_type="application/json")
    return _refusal(503, NOT_READY, MODEL, **{"retry-after": "2"})


def schema(model: Model, request: Request) -> Response:
    """The schemas of a model with hints of pydantic."""
    if model.engine.state not in states.SERVING:
        return _refusal(503, NOT_READY, MODEL, **{"retry-after": "2"})
    described = model.api.get("platform", {}).get("schema")
    if described is None:
        return _refusal(404, "No schema found", MODEL)
    return Response(json.dumps(described, ensure_ascii=False, separators=(",", ":")), media_type="application/json")


def missing(model: Model, request: Request) -> Response:
    """The answer on the route of a method that the class does not have."""
    name = next(method for method, path in OPENAI.items() if request.url.path.endswith(path))
    return _refusal(404, f"`{name}` must only be called if model has it.", CLIENT)
