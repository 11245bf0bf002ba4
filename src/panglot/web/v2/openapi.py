"""The routes of the Open Inference Protocol, as a part of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from panglot.web.contract import CONTROL, INFER, PUBLIC
from panglot.web.models import Model
from panglot.web.v2.pages import PAGES
from panglot.web.v2.repository import PAGES as REPOSITORY

Object = dict[str, Any]
TAG = {"name": "tensors", "description": "The Open Inference Protocol, which clients of Triton and KServe speak"}
TEXT, FLAG, WHOLE = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "format": "int64"}
DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64",
    "BYTES",
)  # fmt: skip


@dataclass(frozen=True)
class PageAbout:
    """A page in the document: the name of its operation, a summary, and the schema of its answer."""

    name: str
    summary: str
    schema: str


PAGES_ABOUT = {
    "/v2/health/live": PageAbout("health_live", "Whether the server runs", "Live"),
    "/v2/health/ready": PageAbout("health_ready", "Whether requests are answered now", "Ready"),
    "/v2": PageAbout("server_metadata", "What the server is, and which extensions it has", "ServerMetadata"),
    "/v2/": PageAbout("server_metadata_too", "The same", "ServerMetadata"),
    "/v2/models/stats": PageAbout("statistics", "What all models have done", "Statistics"),
    "/v2/repository/index": PageAbout("repository_index", "All models, and whether they answer", "RepositoryIndex"),
    "": PageAbout("model_metadata", "The model's inputs and outputs", "ModelMetadata"),
    "/ready": PageAbout("model_ready", "Whether the model answers now", "ModelReady"),
    "/config": PageAbout("model_config", "The model's configuration, as Triton words it", "ModelConfig"),
    "/stats": PageAbout("model_statistics", "What the model has done", "Statistics"),
}
"""Pages by their path, those about a model by what follows its name."""
CHANGES = {
    "load": "Load a model of the server's folder, or load it again; it answers when the new one does",
    "unload": "Unload a model; requests that have come are answered",
}
GENERATES = {"generate": "application/json", "generate_stream": "text/event-stream"}
"""The content types of Triton's extension `generate`, by the last segment of the path."""
ALWAYS = ("X-Request-Id", "Server-Timing")
HEALTH = (("/v2/health/live", PUBLIC), ("/v2/health/ready", PUBLIC))
MODEL, VERSION = "/v2/models/{model}", "/v2/models/{model}/versions/{version}"

Secured = Callable[[str], Object]
"""Makes the part of an operation about the token, given the access of its route."""


def paths(model: Model, secured: Secured) -> Object:
    """All routes of the protocol on a server of this model."""
    operations: Object = {path: {"get": _page("GET", path, access, secured)} for path, access in HEALTH}
    for page in PAGES:
        operations[_placed(page.path, model)] = {
            method.lower(): _page(method, page.path, page.access, secured) for method in page.methods
        }
    for start in (MODEL, VERSION):
        operation = _infer("infer_tensors" if start == MODEL else "infer_tensors_by_version", secured)
        operations[_placed(start, model) + "/infer"] = {"post": operation}
        for ending, content_type in GENERATES.items():
            name = ending if start == MODEL else f"{ending}_by_version"
            operations[f"{_placed(start, model)}/{ending}"] = {"post": _generate(name, content_type, secured)}
    return operations


def repository_paths(secured: Secured) -> Object:
    """The routes by which models are loaded and unloaded, on a server that does so."""
    return {page.path: {"post": _change(page.path.rpartition("/")[2], secured)} for page in REPOSITORY}


def _change(word: str, secured: Secured) -> Object:
    sent = {"type": "object", "properties": {"parameters": {"type": "object", "properties": {}}}}
    return {
        "operationId": f"repository_{word}",
        "tags": [TAG["name"]],
        "summary": CHANGES[word],
        "requestBody": {"required": False, "content": {"application/json": {"schema": sent}}},
        "responses": {"200": _answer("It is done.", "Done"), **_failures()},
        **secured(CONTROL),
    }


def _placed(path: str, model: Model) -> str:
    return path.replace("{model}", quote(model.name)).replace("{version}", quote(model.version))


def _page(method: str, path: str, access: str, secured: Secured) -> Object:
    rest = path.removeprefix(VERSION) if path.startswith(VERSION) else path.removeprefix(MODEL)
    about = PAGES_ABOUT[path if path in PAGES_ABOUT else rest]
    name = f"{about.name}_by_version" if path.startswith(VERSION) else about.name
    answers = {"200": _answer(about.summary, about.schema), **_failures()}
    if about.schema in ("Ready", "ModelReady"):
        answers["503"] = _answer("It does not answer now.", f"Not{about.schema}", "Refusal")
    operation = {"operationId": name, "tags": [TAG["name"]], "summary": about.summary, "responses": answers}
    if method == "POST":
        wanted = {"type": "object", "properties": {"ready": FLAG}}
        operation["requestBody"] = {"required": False, "content": {"application/json": {"schema": wanted}}}
    return {**operation, **secured(access)}


def _infer(name: str, secured: Secured) -> Object:
    binary = {"schema": {"type": "string", "format": "binary"}}
    answer = _answer("The outputs, in JSON or, where that was asked for, as bytes behind it.", "InferResponse")
    answer["content"]["application/octet-stream"] = binary
    return {
        "operationId": name,
        "tags": [TAG["name"]],
        "summary": "Run the model on tensors",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _reference("InferRequest")}}},
        "responses": {"200": answer, **_failures()},
        **secured(INFER),
    }


def _generate(name: str, content_type: str, secured: Secured) -> Object:
    value = {"schema": {"type": "object", "additionalProperties": {}}}
    answer = _answer("A value for each output; as events, one for each response.", "Refusal")
    answer["content"] = {content_type: value if content_type == "application/json" else {"schema": TEXT}}
    return {
        "operationId": name,
        "tags": [TAG["name"]],
        "summary": "Run the model on a JSON object with a value for each input",
        "requestBody": {"required": True, "content": {"application/json": value}},
        "responses": {"200": answer, **_failures()},
        **secured(INFER),
    }


def _answer(about: str, *schemas: str) -> Object:
    options = [_reference(schema) for schema in schemas]
    schema = options[0] if len(options) == 1 else {"oneOf": options}
    headers = {name: {"$ref": f"#/components/headers/{name.replace('-', '')}"} for name in ALWAYS}
    return {"description": about, "headers": headers, "content": {"application/json": {"schema": schema}}}


def _failures() -> Object:
    return {status: _answer("A sentence that says what is wrong.", "Refusal") for status in ("4XX", "5XX")}


def _reference(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Object) -> Object:
    return {"type": "array", "items": of}


def _open(properties: Object, *required: str) -> Object:
    return {"type": "object", "properties": properties, "required": list(required or properties)}


def schemas() -> Object:
    """The schemas that the routes refer to."""
    tensor = {"name": TEXT, "datatype": {"type": "string", "enum": list(DATATYPES)}, "shape": _list(WHOLE)}
    parameters = {"type": "object", "additionalProperties": {}}
    given = {**tensor, "parameters": parameters, "data": _list({})}
    wanted = {"name": TEXT, "parameters": parameters}
    request = {
        "id": TEXT,
        "parameters": parameters,
        "inputs": {**_list(_open(given, "name", "datatype", "shape")), "minItems": 1},
        "outputs": _list(_open(wanted, "name")),
    }
    answer = {"model_name": TEXT, "model_version": TEXT, "id": TEXT, "outputs": _list(_open(given, *tensor))}
    described = _list(_open(tensor))
    return {
        "Refusal": {**_open({"error": TEXT}), "additionalProperties": False},
        "ServerMetadata": _open({"name": TEXT, "version": TEXT, "extensions": _list(TEXT)}),
        "ModelMetadata": _open(
            {"name": TEXT, "versions": _list(TEXT), "platform": TEXT, "inputs": described, "outputs": described}
        ),
        "ModelReady": _open({"name": TEXT, "ready": {"type": "boolean", "enum": [True]}}),
        "NotModelReady": _open({"name": TEXT, "ready": {"type": "boolean", "enum": [False]}}),
        "ModelConfig": _open({"name": TEXT, "platform": TEXT, "max_batch_size": WHOLE}),
        "Statistics": _open({"model_stats": _list(_statistics())}),
        "RepositoryIndex": _list(_open({"name": TEXT, "version": TEXT, "state": TEXT, "reason": TEXT})),
        "Done": {"type": "object", "additionalProperties": False},
        "InferRequest": _open(request, "inputs"),
        "InferResponse": _open(answer, "model_name", "outputs"),
    }


def _statistics() -> Object:
    lasted = _open({"count": WHOLE, "ns": WHOLE})
    parts = dict.fromkeys(("compute_input", "compute_infer", "compute_output"), lasted)
    counts = dict.fromkeys(("last_inference", "inference_count", "execution_count"), WHOLE)
    runs = _list(_open({"batch_size": WHOLE, **parts}))
    about = _open({"success": lasted, "fail": lasted, "queue": lasted, **parts})
    return _open({"name": TEXT, "version": TEXT, **counts, "inference_stats": about, "batch_stats": runs})


NAMES = frozenset(about.name for about in PAGES_ABOUT.values()) | {
    "infer_tensors", "infer_tensors_by_version", "repository_load", "repository_unload",
    *GENERATES, *(f"{ending}_by_version" for ending in GENERATES),
}  # fmt: skip
"""Names of operations that are taken."""
