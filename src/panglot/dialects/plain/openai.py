"""The routes that OpenAI's clients call, for scripts with `chat(messages)` or `embed(texts)`."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from panglot.engine.call import Fault
from panglot.web.contract import INFER, ErrorAnswer, InferRoute, Page

CHAT = ("/v1/chat/completions", "/v1/completions")
EMBED = ("/v1/embeddings",)


def routes(options: Any) -> list[InferRoute]:
    """The routes of a script's `chat` and `embed`."""
    paths = [*(CHAT if options.get("chat") else ()), *(EMBED if options.get("embed") else ())]
    whole = bool(options.get("uses_request"))
    return [InferRoute(path, path, lane=path, whole_head=whole, error=write_error) for path in paths]


def pages(options: Any) -> tuple[Page, ...]:
    """The list of models, and a page for each model."""
    if not options.get("chat") and not options.get("embed"):
        return ()
    return (Page("/v1/models", INFER, list_models), Page("/v1/models/{model}", INFER, show_model))


def list_models(model: Any, request: Request) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [_about(model)]})


def show_model(model: Any, request: Request) -> JSONResponse:
    """The model of a name, which can only be the served model."""
    name = request.path_params["model"]
    if name == model.package.name:
        return JSONResponse(_about(model))
    message = f"the model '{name[:80]}' does not exist; this server has '{model.package.name}'"
    answer = write_error(Fault(404, "model_not_found", message, details={"param": "model"}), "")
    return JSONResponse(json.loads(answer.body), answer.status)


def _about(model: Any) -> dict[str, Any]:
    created = int(model.package.script.stat().st_mtime)
    return {"id": model.package.name, "object": "model", "created": created, "owned_by": "panglot"}


def write_error(fault: Fault, request_id: str) -> ErrorAnswer:
    """A fault in OpenAI's form. The request id is in the header, as theirs is."""
    kind = "invalid_request_error" if fault.status < 500 else "server_error"
    details = dict(fault.details or {})
    error = {"message": fault.message, "type": kind, "param": details.pop("param", None), "code": fault.code, **details}
    return ErrorAnswer(fault.status, b"application/json", json.dumps({"error": error}).encode())
