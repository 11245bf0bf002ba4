"""The served package as an OpenAPI document.

The version is 3.0.3: the Swagger UI that swagger-ui-bundle ships reads nothing newer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import panglot
from panglot.engine import interface as states
from panglot.engine.call import Fault
from panglot.terminal.text import visible
from panglot.web.contract import ADMIN, CONTROL, METRICS, AdminRoute, InferRoute, Page, neutral_error
from panglot.web.documents.bodies import BINARY, JSON, answer_content, file_content, request_content, sendable
from panglot.web.documents.schemas import Definitions, Object, portable
from panglot.web.front import Front
from panglot.web.models import Model
from panglot.web.path_template import template
from panglot.web.v2 import openapi
from panglot_worker.line.description import RouteDescription

TEXT, HTML = "text/plain", "text/html"

Faults = dict[str, tuple[str, str]]
"""Failures by status: their name in the document, and what they mean."""

REFUSALS: Faults = {
    "400": ("BadRequest", "The request is not valid HTTP, has not exactly one Host, or its body cannot be decoded."),
    "401": ("Unauthorized", "The token is missing or wrong."),
    "403": ("Forbidden", "The server does not answer to this host name, or not to pages of that origin or site."),
    "408": ("TooSlow", "Headers or body took too long to arrive."),
    "413": ("TooLarge", "The request body is too large."),
    "414": ("LineTooLong", "The request line is too long."),
    "415": ("UnsupportedBody", "The request body is compressed or of a kind that cannot be decoded."),
    "431": ("HeadersTooLarge", "The headers are too large or too many."),
    "503": ("Unavailable", "The server cannot take the request now. Try again after the time given."),
}
"""Failures that any route may answer with."""

FAILURES: Faults = REFUSALS | {
    "500": ("ScriptFailed", "The script failed on this request, or its result cannot be sent."),
    "504": ("Timeout", "No answer within the deadline."),
    "4XX": ("Refused", "The script refused the request and says why."),
}
"""Failures that the routes of the script may answer with."""

CODES = {
    "400": ("bad_http", "bad_request"),
    "500": ("script_error", "bad_result", "worker_died"),
    "503": ("queue_full", "queue_timeout", "loading", "waking", "back_off", "draining", "memory"),
}
"""Codes of faults a platform may word with a status of its own."""

MORE_HEADERS = {"401": ("WWW-Authenticate",), "503": ("Retry-After",)}


@dataclass(frozen=True)
class Neutral:
    """A GET that every package answers."""

    path: str
    access: str
    name: str
    summary: str
    content_type: str
    schema: str = ""


NEUTRAL = (
    Neutral("/metrics", METRICS, "metrics", "Counters in the Prometheus text form", TEXT),
    Neutral("/openapi.json", ADMIN, "openapi_document", "This document", JSON, "Document"),
    Neutral("/docs", ADMIN, "docs_page", "This document as a page to try it out", HTML),
    Neutral("/", ADMIN, "playground", "A page to try the model on", HTML),
    Neutral("/status", ADMIN, "status_page", "State, workers, recent requests and errors", HTML),
    Neutral("/status.json", ADMIN, "status", "The figures of the status page, ten minutes of them", JSON, "Status"),
    Neutral("/jobs", ADMIN, "jobs", "The jobs that wait, run or have ended", JSON, "Jobs"),
)


BEHIND_MODEL = {"/", "/metrics", "/openapi.json", "/docs", "/status"}
"""The neutral paths that every model has behind its own too."""
BODILESS = ("GET", "DELETE", "OPTIONS", "HEAD")
"""Methods whose requests OpenAPI gives no body."""
ASKING = ("example", "request_types", "request_schema", "autolog", "bytes")
"""What tools need to know of a script to send it requests and to report on it: see `panglot.inputs`."""


def document(front: Front, served: Sequence[tuple[str, Model]], base: str = "") -> Object:
    """The whole document of models, each with what its paths begin with; `base` is what all paths begin with.

    Before a script is ready its bodies are described as anything.
    """
    model = served[0][1]
    api = model.api
    models = list({model.name: model for _, model in served}.values())
    several = len(models) > 1
    definitions = Definitions(_schemas())
    paths = _paths(front, served, definitions)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Several models" if several else visible(model.name if base else model.package.name),
            "version": panglot.__version__,
            "description": _several(models) if several else _markdown(api.get("summary") or "Served by Panglot."),
        },
        **({"servers": [{"url": base}]} if base else {}),
        "tags": [
            *(_tags(models) if several else ({"name": "inference", "description": _dialect(model)},)),
            openapi.TAG,
            {"name": "server", "description": "The same on every package"},
        ],
        "paths": _of_server(paths, model) if base else paths,
        "components": _components(front, model, definitions.schemas),
        "x-panglot": {
            "dialect": model.package.dialect,
            "path": next((route.sample(model.name, model.version) for route in model.contract.routes), ""),
            "api": {name: value for name, value in api.items() if name in ASKING},
            **({"models": [{"name": each.name, "version": each.version} for each in front.models]} if several else {}),
        },
    }


def _dialect(model: Model) -> str:
    return f"The script, served by the {model.package.dialect} dialect"


def _tags(models: Sequence[Model]) -> list[Object]:
    """A heading for each of several models, with what its author says."""
    about = [(visible(model.name), _markdown(model.api.get("summary") or _dialect(model))) for model in models]
    return [{"name": name, "description": text} for name, text in about]


def _several(models: Sequence[Model]) -> str:
    names = "\n".join(f"- [{_markdown(model.name)}](models/{quote(model.name)}/docs)" for model in models)
    return f"Each model has a document of its own:\n\n{names}"


def _of_server(paths: Object, model: Model) -> Object:
    """The paths in a document of one of several models: those that are not behind the model's are at the root."""
    own = [route.path for route in model.contract.routes] + [page.path for page in model.contract.pages]
    for path in paths.keys() - {template(path).plain for path in own} - BEHIND_MODEL:
        paths[path]["servers"] = [{"url": "/"}]
    return paths


def _paths(front: Front, served: Sequence[tuple[str, Model]], definitions: Definitions) -> Object:
    """The scripts' routes, the platforms' own pages, and the neutral routes these leave."""
    routes = [(start, model, route) for start, model in served for route in model.contract.routes]
    pages: list[tuple[str, Model, Page | AdminRoute]] = []
    for start, model in served:
        pages += [(start, model, page) for page in model.contract.pages]
        pages += [(start, model, route) for route in model.contract.admin if not start]
    stems = [start + route.path for start, _, route in routes for _ in route.methods]
    stems += [start + page.path for start, _, page in pages for _ in page.methods]
    names = iter(operation_names(stems))
    paths: Object = {}
    several = len({model.name for _, model in served}) > 1
    for start, model, route in routes:
        described = model.api.get("routes", {})
        own: RouteDescription = described.get(route.worker_route) or described.get(route.path) or model.api
        for method in route.methods:
            operation = _infer(front, model, route, definitions.resolved(own), next(names), method)
            paths.setdefault(template(start + route.path).plain, {})[method.lower()] = operation
            operation["tags"] = [visible(model.name)] if several else operation["tags"]
            if own is not model.api and own.get("summary"):
                operation["summary"] = _markdown(own["summary"])
    for start, model, page in pages:
        for method in page.methods:
            operation = _native_page(front, model, page, next(names))
            operation["tags"] = [visible(model.name)] if several else operation["tags"]
            paths.setdefault(template(start + page.path).plain, {})[method.lower()] = operation
    for model in dict.fromkeys(model for _, model in served):
        for path, methods in openapi.paths(model, functools.partial(_security, front)).items():
            for operation in methods.values():
                operation["operationId"] += f"_{len(paths)}" if model is not served[0][1] else ""
            paths.setdefault(path, methods)
    if front.repository is not None:
        paths |= openapi.repository_paths(functools.partial(_security, front))
    for neutral in NEUTRAL:
        paths.setdefault(neutral.path, {}).setdefault("get", _get(front, neutral))
    for path in paths:
        free = template(path).names
        if free:
            paths[path]["parameters"] = [_free_segment(name, model) for name in free]
    return paths


def _free_segment(name: str, model: Model) -> Object:
    return _reference("parameters", "Name") if name == "name" else _parameters(model)["Name"] | {"name": name}


def operation_names(paths: Iterable[str]) -> list[str]:
    """One name per route, made of the words of its path, fit to be a function's name in a generated client."""
    names: list[str] = []
    taken = {neutral.name for neutral in NEUTRAL} | openapi.NAMES
    for path in paths:
        words = re.findall(r"[A-Za-z0-9]+", re.sub(r"\{.*?\}", "", path))
        stem = name = re.sub(r"^(\d|$)", r"infer_\1", "_".join(words).lower()).rstrip("_")
        while name in taken:
            name = f"{stem}_{len(taken)}"
        taken.add(name)
        names.append(name)
    return names


# Operations


def _infer(front: Front, model: Model, route: InferRoute, api: Object, name: str, method: str) -> Object:
    about = "The script's result."
    if api.get("streams"):
        about = "The results one after the other: server-sent events, or lines of JSON if `Accept` asks for them."
    answer = {
        "description": about,
        "headers": _headers("X-Request-Id", "Server-Timing", "X-Panglot-Warning"),
        "content": _response(route, api),
    }
    chosen = {"2XX": {**answer, "description": "The same with a status of the script's choice."}}
    chosen = chosen if api.get("any_status") else {}
    return {
        "operationId": name,
        "tags": ["inference"],
        "summary": "Run the model on one request",
        "parameters": [
            _reference("parameters", "RequestId"),
            _reference("parameters", "Timeout"),
            *_arguments("path", portable(sendable(api.get("path_schema"), {}))),
            *(_arguments("query", portable(sendable(api.get("request_schema"), {}))) if method in BODILESS else ()),
        ],
        **(_body(route, api) if method not in BODILESS else {}),
        # First, and not hidden by the faults that a platform answers with 200.
        "responses": {"200": answer, **chosen} | _native_faults(front, model, route) | {"200": answer},
        **_security(front, route.access),
    }


def _arguments(place: str, schema: Object) -> Iterator[Object]:
    """What a function takes from the path or the query of its route, by the schema of an object."""
    options: list[Object] = schema.get("anyOf", [schema])
    fields = next((option for option in options if "properties" in option), {})
    for name, about in fields.get("properties", {}).items():
        required = place == "path" or name in fields.get("required", ())
        yield {"name": name, "in": place, "required": required, "schema": about}


def _body(route: InferRoute, api: Object) -> Object:
    if route.without_body or api.get("without_body"):
        return {}
    return {"requestBody": {"required": True, "content": _request(route, api)}}


def _request(route: InferRoute, api: Object) -> Object:
    if route.request is not None:
        return {JSON: {"schema": dict(route.request)}}
    return file_content(route.takes) or request_content(api)


def _response(route: InferRoute, api: Object) -> Object:
    if route.response is not None:
        return {JSON: {"schema": dict(route.response)}}
    return {route.gives: {"schema": {} if route.gives == JSON else BINARY}} if route.gives else answer_content(api)


def _native_page(front: Front, model: Model, page: Page | AdminRoute, name: str) -> Object:
    return {
        "operationId": name,
        "tags": ["inference"],
        "summary": f"A page of {model.package.dialect}",
        "parameters": [_reference("parameters", "RequestId")],
        "responses": {
            "200": {"description": "The answer clients of the platform know."},
            **_faults(front, page.access, REFUSALS),
            "default": {"description": "Another answer clients of the platform know."},
        },
        **_security(front, page.access),
    }


def _get(front: Front, route: Neutral) -> Object:
    schema = _reference("schemas", route.schema) if route.schema else {"type": "string"}
    answer = {
        "description": route.summary,
        "headers": _headers("X-Request-Id", "Server-Timing"),
        "content": {route.content_type: {"schema": schema}},
    }
    responses = {"200": answer} | _faults(front, route.access, REFUSALS)
    return {
        "operationId": route.name,
        "tags": ["server"],
        "summary": route.summary,
        "parameters": [_reference("parameters", "RequestId")],
        "responses": responses,
        **_security(front, route.access),
    }


def _faults(front: Front, access: str, known: Faults) -> Object:
    """References to the failures a route of this access may give."""
    return {status: _reference("responses", name) for status, name, _ in _possible(front, access, known)}


def _possible(front: Front, access: str, known: Faults) -> Iterator[tuple[str, str, str]]:
    never = set()
    if not front.access.needs_token(access):
        never.add("401")
    for status, (name, about) in known.items():
        if status not in never:
            yield status, name, about


def _native_faults(front: Front, model: Model, route: InferRoute) -> Object:
    """The failures of a script's route, with the statuses and content types its platform has for them."""
    error, access = route.error or model.contract.error, route.access
    if error is neutral_error:
        return _faults(front, access, FAILURES)
    responses: Object = {"default": {"description": "Another failure, as clients of the platform know it."}}
    for status, _, about in _possible(front, access, FAILURES):
        for code in CODES.get(status, ("",)) if status.isdigit() else ():
            words = error(Fault(int(status), code, ""), "")
            response = {"description": about, "headers": _headers("X-Request-Id", "Server-Timing"), "content": {}}
            content = responses.setdefault(str(words.status), response)["content"]
            if words.content_type:
                content[words.content_type.decode()] = {"schema": {}}
    return responses


def _security(front: Front, access: str) -> Object:
    if access == CONTROL:
        return {"security": [{"admin": []}]}
    if not front.access.needs_token(METRICS):
        return {}
    return {"security": [{"token": []}] if front.access.needs_token(access) else []}


# Components


def _components(front: Front, model: Model, of_script: Object) -> Object:
    components: Object = {
        "schemas": _schemas() | of_script,
        "responses": _responses(model),
        "parameters": _parameters(model),
        "headers": {name.replace("-", ""): about for name, about in HEADERS.items()},
    }
    tokens = {"token": front.access.is_closed, "admin": front.access.is_controllable}
    schemes = {name: {"type": "http", "scheme": "bearer"} for name, token in tokens.items() if token}
    if schemes:
        components["securitySchemes"] = schemes
    return components


def _responses(model: Model) -> Object:
    more = MORE_HEADERS | ({"500": ("X-Panglot-Error",)} if model.settings.dev else {})
    return {
        name: {
            "description": about,
            "headers": _headers("X-Request-Id", "Server-Timing", *more.get(status, ())),
            "content": {JSON: {"schema": _reference("schemas", "Error")}},
        }
        for status, (name, about) in FAILURES.items()
    }


def _schemas() -> Object:
    error = {
        "code": {"type": "string", "description": "A word for programs"},
        "message": {"type": "string", "description": "A sentence for people"},
        "request_id": {"type": "string", "description": "The same as the X-Request-Id header"},
    }
    not_ready = {
        "ready": {"type": "boolean", "enum": [False]},
        "state": {"type": "string", "enum": [states.LOADING, states.BACK_OFF, states.DRAINING]},
    }
    return {
        "Error": _closed({"error": {**_closed(error), "additionalProperties": True}}),
        "Live": _closed({"live": {"type": "boolean", "enum": [True]}}),
        "Ready": _closed({"ready": {"type": "boolean", "enum": [True]}}),
        "NotReady": _closed(not_ready),
        "Status": {"type": "object", "required": ["state", "workers", "history", "recent", "errors"]},
        "Jobs": {"type": "object", "required": ["jobs"]},
        "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
        **openapi.schemas(),
    }


def _closed(properties: Object) -> Object:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _parameters(model: Model) -> Object:
    return {
        "Name": {
            "name": "name",
            "in": "path",
            "required": True,
            "description": "What the script is asked for.",
            "schema": {"type": "string", "minLength": 1},
        },
        "RequestId": {
            "name": "X-Request-Id",
            "in": "header",
            "description": "Comes back in the answer if it is 1 to 128 letters, digits or `. _ : / + = @ -`; "
            "otherwise the server makes one up.",
            "schema": {"type": "string"},
        },
        "Timeout": {
            "name": "X-Timeout-Ms",
            "in": "header",
            "description": "After how many milliseconds to give up with 504. "
            f"It can only shorten the server's own {model.settings.timeout:g} s.",
            "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999_999},
        },
    }


def _header(about: str, kind: str = "string", required: bool = True) -> Object:
    return {"description": about, "required": required, "schema": {"type": kind}}


HEADERS = {
    "X-Request-Id": _header("Names this request in the log and on the status page"),
    "Server-Timing": _header("How long the request waited and each stage took, in milliseconds"),
    "Retry-After": _header("Seconds to wait before another try", "integer"),
    "WWW-Authenticate": _header("Bearer"),
    "X-Panglot-Warning": _header(
        "What was changed to make the result fit to send, such as NaN to null", required=False
    ),
    "X-Panglot-Error": _header("The last line of the script's traceback", required=False),
}


def _headers(*names: str) -> Object:
    return {name: _reference("headers", name.replace("-", "")) for name in names}


def _reference(kind: str, name: str) -> Object:
    return {"$ref": f"#/components/{kind}/{name}"}


def _markdown(text: str) -> str:
    """Plain text that reads the same where Markdown is expected."""
    return visible(text, keep="\n").replace("&", "&amp;").replace("<", "&lt;")
