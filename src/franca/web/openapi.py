"""The served package as an OpenAPI document.

The version is 3.0.3: the Swagger UI that swagger-ui-bundle ships reads nothing newer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

import franca
from franca.engine import engine as states
from franca.engine.call import Fault
from franca.web.front import Front
from franca.web.native.base import PUBLIC, InferRoute, neutral_error
from franca.web.text import visible

Object = dict[str, Any]

JSON, FORM, BYTES, TEXT, HTML = "application/json", "multipart/form-data", "application/octet-stream", "text/plain", "text/html"
EVENTS, JSON_LINES = "text/event-stream", "application/x-ndjson"
BINARY = {"type": "string", "format": "binary"}
INSIDE = ("items", "additionalProperties")
"""Keys of a schema that hold one more schema."""

REFUSALS = {
    400: ("BadRequest", "The request is not valid HTTP, has not exactly one Host, or its body cannot be decoded."),
    401: ("Unauthorized", "The token is missing or wrong."),
    403: ("UnknownHost", "The server does not answer to this host name."),
    408: ("TooSlow", "Headers or body took too long to arrive."),
    413: ("TooLarge", "The request body is too large."),
    414: ("LineTooLong", "The request line is too long."),
    415: ("UnsupportedBody", "The request body is compressed or of a kind that cannot be decoded."),
    431: ("HeadersTooLarge", "The headers are too large or too many."),
    503: ("Unavailable", "The server cannot take the request now. Try again after the time given."),
}
"""What any route may answer before it is reached."""

FAILURES = {
    500: ("ScriptFailed", "The script failed on this request, or its result cannot be sent."),
    504: ("Timeout", "No answer within the deadline."),
    "4XX": ("Refused", "The script refused the request and says why."),
}
"""What only the routes of the script may answer besides."""


def document(front: Front) -> Object:
    """The whole document. Before the script is ready its bodies are described as anything."""
    api: Object = front.engine.description.get("api") or {}
    about = _markdown(api.get("summary") or "")
    paths = {
        route.path: {"post": _infer(front, route, api, name)}
        for route, name in zip(front.contract.routes, _operation_names(front.contract.routes), strict=True)
    }
    return {
        "openapi": "3.0.3",
        "info": {
            "title": visible(front.package.name),
            "version": franca.__version__,
            "description": about or "Served by Franca.",
        },
        "tags": [
            {"name": "inference", "description": f"The script, as the {front.package.dialect} dialect serves it"},
            {"name": "server", "description": "The same on every package"},
        ],
        "paths": paths | _neutral(front),
        "components": _components(front),
    }


# The script's routes


def _infer(front: Front, route: InferRoute, api: Object, name: str) -> Object:
    responses: Object = {"200": _answer(api)}
    responses |= _faults(front, route.access, REFUSALS | FAILURES, native=True)
    return {
        "operationId": name,
        "tags": ["inference"],
        "summary": "Run the model on one request",
        "description": _markdown(api.get("summary") or ""),
        "parameters": [_reference("parameters", "RequestId"), _reference("parameters", "Timeout")],
        "requestBody": {"required": True, "content": request_content(api)},
        "responses": responses,
        **_security(front, route.access),
    }


def request_content(api: Object) -> Object:
    """The kinds of body the script takes: what its hints say, else what its example shows, else anything."""
    schema = portable(_sendable(api.get("request_schema"), {}))
    example: Object = _sendable(api.get("example"), None) or {}
    kind = example.get("kind")
    if schema:
        content: Object = {}
        for option in schema.get("anyOf", [schema]):
            content |= _content_of(option, example)
        return content
    if kind == "form":
        fields = dict.fromkeys(example["files"], BINARY) | dict.fromkeys(example["fields"], {"type": "string"})
        return _form({"type": "object", "properties": fields, "required": list(example["files"])}, example)
    if kind == "file":
        return _raw(str(example.get("type") or ""))
    if kind == "json":
        return {JSON: {"schema": {}, "example": example["value"]}}
    return {JSON: {"schema": {}}, FORM: {"schema": {"type": "object"}}, BYTES: {"schema": BINARY}}


def _content_of(schema: Object, example: Object) -> Object:
    if _is_binary(schema):
        return _raw(str(example.get("type") or "") if example.get("kind") == "file" else "")
    if any(_takes_file(field) for field in schema.get("properties", {}).values()):
        return _form(schema, example)
    media: Object = {"schema": schema}
    if example.get("kind") == "json":
        media["example"] = example["value"]
    return {JSON: media}


def _raw(content_type: str) -> Object:
    """A body that is one file: as the example has it, as anything alike, or as plain bytes."""
    types = dict.fromkeys((content_type, _alike(content_type), BYTES))
    return {kind: {"schema": BINARY} for kind in types if kind and kind != JSON}


def _form(schema: Object, example: Object) -> Object:
    files = example["files"] if example.get("kind") == "form" else {}
    properties = schema["properties"]
    encoding = {name: {"contentType": _alike(kind)} for name, kind in files.items() if kind and name in properties}
    return {FORM: {"schema": schema, **({"encoding": encoding} if encoding else {})}}


def _alike(content_type: str) -> str:
    """`image/*` for `image/png`: the type of an example is no promise that others are refused."""
    family = content_type.partition("/")[0]
    return f"{family}/*" if family in ("image", "audio", "video") else content_type


def _is_binary(schema: Object) -> bool:
    return schema.get("format") == "binary"


def _takes_file(schema: Object) -> bool:
    options = [schema, schema.get("items", {}), *schema.get("anyOf", [])]
    return any(_is_binary(option) for option in options)


def _answer(api: Object) -> Object:
    about = "The script's result."
    if api.get("streams"):
        about = "The results one after the other: server-sent events, or lines of JSON if `Accept` asks for them."
        content: Object = {EVENTS: {"schema": {"type": "string"}}, JSON_LINES: {"schema": {"type": "string"}}}
    else:
        content = _result_content(portable(_sendable(api.get("response_schema"), {})))
    headers = _headers("X-Request-Id", "Server-Timing", "X-Franca-Warning")
    return {"description": about, "headers": headers, "content": content}


def _result_content(schema: Object) -> Object:
    """JSON as the hints say; bytes with a type of the script's choice where they may be the result."""
    options = schema.get("anyOf", [schema])
    values = [_as_base64(option) for option in options if not _is_binary(option)]
    content: Object = {}
    if values:
        content[JSON] = {"schema": values[0] if len(values) == 1 else {**schema, "anyOf": values}}
    if any(_is_binary(option) or _may_be_bytes(option) for option in options):
        content[BYTES] = content["*/*"] = {"schema": BINARY}
    return content


def _may_be_bytes(schema: Object) -> bool:
    """Anything may, and so may a pair: it could be bytes and their content type."""
    return not schema or (schema.get("type") == "array" and schema.get("maxItems") == 2)


def _as_base64(schema: Object) -> Object:
    """Bytes inside a JSON result are sent as base64."""
    if _is_binary(schema):
        return {**schema, "format": "byte"}
    result = {key: _as_base64(value) if key in INSIDE else value for key, value in schema.items()}
    if "properties" in schema:
        result["properties"] = {name: _as_base64(field) for name, field in schema["properties"].items()}
    if "anyOf" in schema:
        result["anyOf"] = [_as_base64(option) for option in schema["anyOf"]]
    return result


# The neutral routes


def _neutral(front: Front) -> Object:
    from franca.web.app import ROUTES

    access = {route.path: route.access for route in ROUTES}
    ready = _get(front, access, "/v2/health/ready", "health_ready", "Whether requests are answered now", JSON, "Ready")
    ready["responses"]["503"] = {
        "description": "Requests would not be answered now, or there are too many connections.",
        "headers": _headers("X-Request-Id", "Server-Timing", "Retry-After"),
        "content": {JSON: {"schema": {"oneOf": [_reference("schemas", name) for name in ("NotReady", "Error")]}}},
    }
    return {
        "/v2/health/live": {
            "get": _get(front, access, "/v2/health/live", "health_live", "Whether the server runs", JSON, "Live")
        },
        "/v2/health/ready": {"get": ready},
        "/metrics": {"get": _get(front, access, "/metrics", "metrics", "Counters in the Prometheus text form", TEXT)},
        "/openapi.json": {"get": _get(front, access, "/openapi.json", "openapi_document", "This document", JSON, "Document")},
        "/docs": {"get": _get(front, access, "/docs", "docs_page", "This document as a page to try it out", HTML)},
        "/": {"get": _get(front, access, "/", "status_page", "State, workers, recent requests and errors", HTML)},
    }


def _get(
    front: Front, access: dict[str, str], path: str, name: str, summary: str, content_type: str, schema: str = ""
) -> Object:
    media = _reference("schemas", schema) if schema else {"type": "string"}
    answer = {
        "description": summary,
        "headers": _headers("X-Request-Id", "Server-Timing"),
        "content": {content_type: {"schema": media}},
    }
    return {
        "operationId": name,
        "tags": ["server"],
        "summary": summary,
        "parameters": [_reference("parameters", "RequestId")],
        "responses": {"200": answer} | _faults(front, access[path], REFUSALS, native=False),
        **_security(front, access[path]),
    }


# What both share


def _faults(front: Front, access: str, known: Iterable[int | str], *, native: bool) -> Object:
    """References to the failures a route of this access may give, in the platform's words or in ours."""
    table: dict[int | str, tuple[str, str]] = {**REFUSALS, **FAILURES}
    without = set()
    if not front.access.token or access == PUBLIC:
        without.add(401)
    if not front.access.hosts:
        without.add(403)
    prefix = "" if native or front.contract.error is neutral_error else "Neutral"
    return {str(code): _reference("responses", prefix + table[code][0]) for code in known if code not in without}


def _security(front: Front, access: str) -> Object:
    if not front.access.token:
        return {}
    return {"security": [] if access == PUBLIC else [{"token": []}]}


def _components(front: Front) -> Object:
    native = front.contract.error is neutral_error
    content_type, _ = front.contract.error(Fault(400, "", ""), "")
    error = _reference("schemas", "Error")
    responses = _responses(front, {content_type.decode(): {"schema": error if native else {}}})
    if not native:
        responses |= {f"Neutral{name}": about for name, about in _responses(front, {JSON: {"schema": error}}).items()}
    components: Object = {
        "schemas": _schemas(),
        "responses": responses,
        "parameters": _parameters(front),
        "headers": {name.replace("-", ""): about for name, about in HEADERS.items()},
    }
    if front.access.token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return components


def _responses(front: Front, content: Object) -> Object:
    extra = {401: ["WWW-Authenticate"], 503: ["Retry-After"], 500: ["X-Franca-Error"] if front.settings.dev else []}
    return {
        name: {
            "description": about,
            "headers": _headers("X-Request-Id", "Server-Timing", *extra.get(code, []) if isinstance(code, int) else ()),
            "content": content,
        }
        for code, (name, about) in ({**REFUSALS, **FAILURES}).items()
    }


def _schemas() -> Object:
    text = {"type": "string"}
    return {
        "Error": _closed({
            "error": _closed({
                "code": {"type": "string", "description": "A word for programs"},
                "message": {"type": "string", "description": "A sentence for people"},
                "request_id": {"type": "string", "description": "The same as the X-Request-Id header"},
            })
        }),
        "Live": _closed({"live": {"type": "boolean", "enum": [True]}}),
        "Ready": _closed({"ready": {"type": "boolean", "enum": [True]}}),
        "NotReady": _closed({
            "ready": {"type": "boolean", "enum": [False]},
            "state": {"type": "string", "enum": [states.LOADING, states.BACK_OFF, states.DRAINING]},
        }),
        "Document": {
            "type": "object",
            "properties": {"openapi": text, "info": {"type": "object"}, "paths": {"type": "object"}},
            "required": ["openapi", "info", "paths"],
        },
    }  # fmt: skip


def _closed(properties: Object) -> Object:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _parameters(front: Front) -> Object:
    return {
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
            f"It can only shorten the server's own {front.settings.timeout:g} s.",
            "schema": {"type": "number", "minimum": 0, "example": 5000},
        },
    }


def _header(about: str, kind: str = "string", required: bool = True) -> Object:
    return {"description": about, "required": required, "schema": {"type": kind}}


HEADERS = {
    "X-Request-Id": _header("Names this request in the log and on the status page"),
    "Server-Timing": _header("How long the request waited and each stage took, in milliseconds"),
    "Retry-After": _header("Seconds to wait before another try", "integer", required=False),
    "WWW-Authenticate": _header("Bearer"),
    "X-Franca-Warning": _header("What was changed to make the result fit to send, such as NaN to null", required=False),
    "X-Franca-Error": _header("The last line of the script's traceback", required=False),
}


def _headers(*names: str) -> Object:
    return {name: _reference("headers", name.replace("-", "")) for name in names}


def _reference(kind: str, name: str) -> Object:
    return {"$ref": f"#/components/{kind}/{name}"}


def _operation_names(routes: Iterable[InferRoute]) -> list[str]:
    """One name per route, made of the words of its path, fit to be a function's name in any language."""
    names: list[str] = []
    for route in routes:
        words = re.findall(r"[A-Za-z0-9]+", re.sub(r"\{.*?\}", "", route.path))
        name = "_".join(words).lower() or "infer"
        name = f"infer_{name}" if name[0].isdigit() else name
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return names


# Schemas


def portable(schema: Object) -> Object:
    """A JSON Schema in the words of OpenAPI 3.0, which has no type `null` and wants `items` in every array."""
    result = dict(schema)
    if result.get("type") == "null":
        return {"enum": [None], "nullable": True}
    if result.get("type") == "array":
        result.setdefault("items", {})
    if result.get("type") == "integer":
        result.setdefault("format", "int64")
    result |= {key: portable(result[key]) for key in INSIDE if isinstance(result.get(key), dict)}
    if "properties" in result:
        result["properties"] = {name: portable(field) for name, field in result["properties"].items()}
    if "anyOf" in result:
        return _alternatives(result)
    return result


def _alternatives(schema: Object) -> Object:
    options = [portable(option) for option in schema["anyOf"] if option.get("type") != "null"]
    if len(options) < len(schema["anyOf"]):
        options = [{**option, "nullable": True} if "type" in option else option for option in options]
    if len(options) == 1:
        return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}
    return {**schema, "anyOf": options}


def _sendable(value: Any, otherwise: Any) -> Any:
    """The value, if it can stand in the document."""
    try:
        orjson.dumps(value)
    except TypeError:
        return otherwise
    return value if value is not None else otherwise


def _markdown(text: str) -> str:
    """Plain text that reads the same where Markdown is expected."""
    return visible(text, keep="\n").replace("&", "&amp;").replace("<", "&lt;")
