"""The routes that OpenAI's clients call, for scripts with `chat(messages)` or `embed(texts)`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from panglot.engine.call import Fault
from panglot.web.contract import INFER, AdminRoute, ErrorAnswer, InferRoute, ModelName, Page

if TYPE_CHECKING:
    from panglot.web.models import ModelAdministration

CHAT = ("/v1/chat/completions", "/v1/completions")
EMBED = ("/v1/embeddings",)
LIST, OF_MODEL = "/v1/models", "/v1/models/{model}"
NAMED = ModelName(field="model", worker_checks=True)


def routes(options: Any) -> list[InferRoute]:
    """The routes of a script's `chat` and `embed`."""
    paths = [*(CHAT if options.get("chat") else ()), *(EMBED if options.get("embed") else ())]
    whole = bool(options.get("uses_request"))
    return [InferRoute(path, path, lane=path, whole_head=whole, error=write_error, model=NAMED) for path in paths]


def is_served(options: Any) -> bool:
    """Whether OpenAI's clients can call a script."""
    return bool(options.get("chat") or options.get("embed"))


def pages(options: Any) -> tuple[Page, ...]:
    """The pages below the path of one model: a list with this model alone, and the page of it."""
    if not is_served(options):
        return ()
    return (
        Page(LIST, INFER, lambda model, request: listing([model])),
        Page(OF_MODEL, INFER, lambda model, request: show_model([model], request.path_params["model"])),
    )


def lists(options: Any) -> tuple[AdminRoute, ...]:
    """The list of all models at the root, and a page for each."""
    if not is_served(options):
        return ()

    def list_all(administration: ModelAdministration, request: Request) -> JSONResponse:
        return listing(_newest(administration))

    def show(administration: ModelAdministration, request: Request) -> JSONResponse:
        return show_model(_newest(administration), request.path_params["model"])

    return (
        AdminRoute(LIST, list_all, methods=("GET",), access=INFER),
        AdminRoute(OF_MODEL, show, methods=("GET",), access=INFER),
    )


def _newest(administration: ModelAdministration) -> list[Any]:
    """The models that OpenAI's clients can call, the newest version of each name."""
    # `models` has the oldest version of each name first, so the newest one stays in the table.
    newest = {model.name: model for model in administration.models() if is_served(model.package.options)}
    return list(newest.values())


def listing(models: list[Any]) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [_about(model) for model in models]})


def show_model(models: list[Any], name: str) -> JSONResponse:
    """The model of a name."""
    for model in models:
        if name == model.package.name:
            return JSONResponse(_about(model))
    known = ", ".join(f"'{model.package.name}'" for model in models) or "none"
    message = f"the model '{name[:80]}' does not exist; this server has {known}"
    answer = write_error(Fault(404, "model_not_found", message, details={"param": "model"}), "")
    return JSONResponse(json.loads(answer.body), answer.status)


def _about(model: Any) -> dict[str, Any]:
    created = int(model.package.script.stat().st_mtime)
    return {"id": model.package.name, "object": "model", "created": created, "owned_by": "panglot"}


def write_error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in OpenAI's form. As there, the request id is in a header."""
    kind = "invalid_request_error" if fault.status < 500 else "server_error"
    details = dict(fault.details or {})
    if fault.code == "no_model":
        # The front's code for an unknown model, and OpenAI's code for it.
        details, fault = {"param": "model"}, fault._replace(code="model_not_found")
    error = {"message": fault.message, "type": kind, "param": details.pop("param", None), "code": fault.code, **details}
    return ErrorAnswer(fault.status, b"application/json", json.dumps({"error": error}).encode())
