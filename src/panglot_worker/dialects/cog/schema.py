"""The document that the platform's tools read: `openapi.json` with Input, Output and the predictions around them."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Dict, List

from panglot_worker.dialects.cog import outputs
from panglot_worker.dialects.cog.kinds import NONE
from panglot_worker.dialects.cog.signature import Parameter, Signature

REF = "#/components/schemas/%s"
STATUSES = ["starting", "processing", "succeeded", "canceled", "failed"]
EVENTS = ["start", "output", "logs", "completed"]


def input_schema(signature: Signature) -> Dict[str, Any]:
    """The schema `Input`, in the order of the parameters."""
    properties = {parameter.name: _property(parameter, order) for order, parameter in enumerate(signature.parameters)}
    schema: Dict[str, Any] = {"title": "Input", "type": "object", "properties": properties}
    required = [parameter.name for parameter in signature.parameters if parameter.is_required]
    return {**schema, "required": required} if required else schema


def _property(parameter: Parameter, order: int) -> Dict[str, Any]:
    field = parameter.field
    schema: Dict[str, Any] = {}
    if field.choices:
        schema["allOf"] = [{"$ref": REF % parameter.name}]
    else:
        schema = {"title": parameter.name.replace("_", " ").title(), **parameter.kind.schema}
    more = {
        "minimum": field.ge, "maximum": field.le, "minLength": field.min_length, "maxLength": field.max_length,
        "pattern": field.regex, "description": field.description, "deprecated": field.deprecated,
    }  # fmt: skip
    schema.update({name: value for name, value in more.items() if value is not None})
    if parameter.default is not None:
        schema["default"] = outputs.plain(parameter.default) if not parameter.kind.is_file else str(parameter.default)
    if parameter.kind.optional:
        schema["nullable"] = True
    return {**schema, "x-order": order}


def choices(signature: Signature) -> Dict[str, Any]:
    """A schema for each input with choices."""
    return {
        parameter.name: {
            "title": parameter.name, "enum": list(parameter.field.choices),
            "type": parameter.kind.schema.get("type", "string"), "description": "An enumeration.",
        }
        for parameter in signature.parameters
        if parameter.field.choices
    }  # fmt: skip


def output_schema(annotation: Any) -> Dict[str, Any]:
    """The schema `Output`, for the annotation of the result."""
    return {"title": "Output", **_of(annotation)}


def _of(annotation: Any) -> Dict[str, Any]:
    origin, arguments = getattr(annotation, "__origin__", None), list(getattr(annotation, "__args__", ()))
    name = getattr(origin, "__name__", "") or getattr(annotation, "_name", "") or ""
    inner = _of(arguments[0]) if arguments else {}
    if "ConcatenateIterator" in name:
        display = {"x-cog-array-type": "iterator", "x-cog-array-display": "concatenate"}
        return {"type": "array", "items": inner, **display}
    if name.endswith(("Iterator", "Generator")):
        return {"type": "array", "items": inner, "x-cog-array-type": "iterator"}
    if origin is list:
        return {"type": "array", "items": inner}
    if NONE in arguments:
        rest = [argument for argument in arguments if argument is not NONE]
        return {**(_of(rest[0]) if len(rest) == 1 else {}), "nullable": True}
    if origin is dict or annotation is dict:
        return {"type": "object"}
    return _of_class(annotation) if isinstance(annotation, type) else {}


def _of_class(kind: type) -> Dict[str, Any]:
    simple = {str: "string", int: "integer", float: "number", bool: "boolean"}
    if kind in simple:
        return {"type": simple[kind]}
    if issubclass(kind, pathlib.PurePath) or kind.__name__ == "File":
        return {"type": "string", "format": "uri"}
    fields: Dict[str, Any] = {}
    if callable(getattr(kind, "fields", None)):
        fields = kind.fields()  # type: ignore[attr-defined]
    elif dataclasses.is_dataclass(kind):
        fields = {field.name: field.type for field in dataclasses.fields(kind)}
    if not fields:
        return {}
    properties = {name: {"title": name.replace("_", " ").title(), **_of(each)} for name, each in fields.items()}
    return {"type": "object", "properties": properties}


def document(signature: Signature) -> Dict[str, Any]:
    """The whole document."""
    schemas: Dict[str, Any] = {
        "Input": input_schema(signature),
        "Output": output_schema(signature.output),
        "Status": {"title": "Status", "enum": STATUSES, "type": "string", "description": "An enumeration."},
        "WebhookEvent": {"title": "WebhookEvent", "enum": EVENTS, "type": "string",
                         "description": "An enumeration."},
        "PredictionRequest": {"title": "PredictionRequest", "type": "object", "properties": _request()},
        "PredictionResponse": {"title": "PredictionResponse", "type": "object", "properties": _response()},
        **choices(signature),
    }  # fmt: skip
    return {
        "openapi": "3.0.2",
        "info": {"title": "Cog", "version": "0.1.0"},
        "paths": _paths(),
        "components": {"schemas": schemas},
    }


def _request() -> Dict[str, Any]:
    events = {"type": "array", "items": {"$ref": REF % "WebhookEvent"}, "default": EVENTS}
    return {
        "input": {"$ref": REF % "Input"},
        "id": {"title": "Id", "type": "string"},
        "created_at": {"title": "Created At", "type": "string", "format": "date-time"},
        "output_file_prefix": {"title": "Output File Prefix", "type": "string"},
        "webhook": {"title": "Webhook", "type": "string", "format": "uri"},
        "webhook_events_filter": events,
    }


def _response() -> Dict[str, Any]:
    moments = {name: {"type": "string", "format": "date-time"} for name in ("created_at", "started_at", "completed_at")}
    texts = {name: {"type": "string"} for name in ("id", "version", "logs", "error")}
    return {
        "input": {"$ref": REF % "Input"},
        "output": {"$ref": REF % "Output"},
        **texts,
        **moments,
        "status": {"$ref": REF % "Status"},
        "metrics": {"title": "Metrics", "type": "object"},
    }


def _paths() -> Dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"$ref": REF % "PredictionRequest"}}}}
    answer = {"200": {"description": "Successful Response", "content": {
        "application/json": {"schema": {"$ref": REF % "PredictionResponse"}}}}}  # fmt: skip
    named: List[Dict[str, Any]] = [
        {"name": "prediction_id", "in": "path", "required": True, "schema": {"type": "string"}}
    ]
    plain_answer = {"200": {"description": "Successful Response"}}
    prediction = "/predictions/{prediction_id}"
    return {
        "/": {"get": {"summary": "Root", "responses": plain_answer}},
        "/health-check": {"get": {"summary": "Healthcheck", "responses": plain_answer}},
        "/predictions": {"post": {"summary": "Predict", "requestBody": body, "responses": answer}},
        prediction: {
            "put": {"summary": "Predict Idempotent", "parameters": named, "requestBody": body, "responses": answer}
        },
        prediction + "/cancel": {"post": {"summary": "Cancel", "parameters": named, "responses": plain_answer}},
    }
