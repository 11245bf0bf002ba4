"""Routes of every kind."""

from __future__ import annotations

import dataclasses
import json

from starlette.requests import Request
from starlette.responses import JSONResponse

from panglot.engine.call import Fault
from panglot.packages.package import Package
from panglot.settings import Settings
from panglot.web.contract import (
    ADMIN,
    INFER,
    PUBLIC,
    AdminRoute,
    Contract,
    ErrorAnswer,
    InferRoute,
    Listener,
    ModelName,
    Page,
    RpcMethod,
    RpcService,
    TokenForm,
)
from panglot.web.models import Model, ModelAdministration

ATLAS = RpcService(
    package="atlas.v1",
    name="Atlas",
    methods=(
        RpcMethod("Ping", "google.protobuf.Empty", "Pong", access=PUBLIC, answer=lambda model, body: pong(model)),
        RpcMethod("Ask", "Question", "Told", model_field=2, version_field=3),
        RpcMethod("AskDefault", "Question", "Told", target="default"),
        RpcMethod("AskInParts", "Question", "Told", model_field=2, streams=True),
    ),
    messages={
        "Question": ("model_name 2 string", "version 3 string", "tags 4 map bytes", "text 5 bytes"),
        "Told": ("json 1 string",),
        "Pong": ("model 1 string",),
    },
    error=lambda fault: (5 if fault.code == "no_model" else 13, f"atlas: {fault.code}"),
)
SEGMENT = ModelName(segment="model", version="version")


def route(path: str, *methods: str, model: ModelName | None = None, target: str = "") -> InferRoute:
    return InferRoute(path, path, methods=methods or ("POST",), model=model, target=target)


def contract(package: Package, settings: Settings) -> Contract:
    """The routes of the atlas; where a file says so, with a port for administration that its models share."""
    whole = _contract()
    port = package.folder / "port.txt"
    if not port.is_file():
        return whole
    routes = (route("/predictions/{model}", model=SEGMENT), route("/whoami"))
    desk = Contract(routes, error, whole.pages, whole.admin, error)
    return dataclasses.replace(whole, listeners=(Listener(int(port.read_text()), desk, shared=True),))


def _contract() -> Contract:
    return Contract(
        routes=(
            route("/ask"),
            InferRoute("/headers", "/headers", whole_head=True),
            route("/anyhow", "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"),
            route("/jobs/{id}", "GET", "DELETE"),
            route("/jobs/{id}", "PUT", target="replace"),
            route("/jobs/{id}/cancel"),
            route("/jobs/{id}/parts/{part}", "GET"),
            route("/files/{rest...}", "GET", "POST"),
            route("/v2/{endpoint}/run"),
            route("/predictions/{model}", "POST", "GET", model=SEGMENT),
            route("/predictions/{model}/{version}", model=SEGMENT),
            route("/predictions/{model}/{version}/{rest...}", model=SEGMENT),
            route("/v1/models/{model}:predict", model=SEGMENT),
            route("/invocations", model=ModelName(query="model_name")),
            route("/chat", "POST", "PUT", model=ModelName(field="model")),
            route("/{rest...}", "GET"),
        ),
        error=error,
        unknown=error,
        pages=(
            Page("/v1/models/{model}", INFER, about, model=SEGMENT),
            Page("/records/{number}/{rest...}", INFER, record, methods=("GET", "DELETE")),
        ),
        admin=(
            AdminRoute("/registry", show_all, methods=("GET",), access=ADMIN),
            AdminRoute("/registry/{model}", load),
            AdminRoute("/registry/{model}", unload, methods=("DELETE",)),
            AdminRoute("/registry/{model}/{version}", scale, methods=("PUT",)),
        ),
        services=(ATLAS,),
        model_version="1.0",
        token_forms=(TokenForm("Api-Key"), TokenForm("Token"), TokenForm(), TokenForm(header="x-api-key")),
    )


def pong(model: Model) -> bytes:
    name = model.name.encode()
    return bytes((10, len(name))) + name


def error(fault: Fault, request_id: str) -> ErrorAnswer:
    body = {"atlas": fault.code, "text": fault.message, "details": fault.details or {}}
    return ErrorAnswer(fault.status, b"application/json", json.dumps(body).encode())


def show_all(administration: ModelAdministration, request: Request) -> JSONResponse:
    models = [{"name": model.name, "state": model.engine.state} for model in administration.models()]
    return JSONResponse({"models": models, "absent": dict(administration.absent())})


async def load(administration: ModelAdministration, request: Request) -> JSONResponse:
    await administration.load(request.path_params["model"])
    return JSONResponse({"loaded": request.path_params["model"]})


async def unload(administration: ModelAdministration, request: Request) -> JSONResponse:
    await administration.unload(request.path_params["model"])
    return JSONResponse({"unloaded": request.path_params["model"]})


async def scale(administration: ModelAdministration, request: Request) -> JSONResponse:
    model = administration.find(request.path_params["model"], request.path_params["version"])
    least, most = int(request.query_params["min"]), int(request.query_params["max"])
    enough = await administration.scale(model, least, most, wait=60)
    return JSONResponse({"enough": enough, "sizes": model.engine.sizes()}, 200 if enough else 202)


def about(model: Model, request: Request) -> JSONResponse:
    return JSONResponse({"name": model.name, "version": model.version, "state": model.engine.state})


def record(model: Model, request: Request) -> JSONResponse:
    return JSONResponse({"model": model.name, "method": request.method, "values": request.path_params})
