"""The document that the platform's tools read: `openapi.json` with Input, Output and the predictions around them."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional

from panglot_worker.dialects.cog import kinds, outputs
from panglot_worker.dialects.cog.kinds import NONE
from panglot_worker.dialects.cog.signature import Parameter, Signature

REF = "#/components/schemas/%s"
STATUSES = ["starting", "processing", "succeeded", "canceled", "failed"]
EVENTS = ["start", "output", "logs", "completed"]
PLAIN_ANSWER = {"200": {"description": "Successful Response"}}


class Wording(NamedTuple):
    """What a document calls predictions, or trainings."""

    prefix: str
    """What the names of schemas begin with."""
    noun: str
    verb: str
    cancel: str

    @property
    def of_values(self) -> str:
        """What the names of the schemas for inputs and outputs begin with."""
        return "" if self is PREDICTIONS else self.prefix


PREDICTIONS = Wording("Prediction", "prediction", "Predict", "Cancel")
TRAININGS = Wording("Training", "training", "Train", "Cancel Training")


def input_schema(signature: Signature, title: str = "Input", is_whole: bool = False) -> Dict[str, Any]:
    """The schema `Input`, in the order of the parameters; `is_whole`: it refers to no other."""
    properties = {
        parameter.name: _property(parameter, order, is_whole) for order, parameter in enumerate(signature.parameters)
    }
    schema: Dict[str, Any] = {"title": title, "type": "object", "properties": properties}
    required = [parameter.name for parameter in signature.parameters if parameter.is_required]
    return {**schema, "required": required} if required else schema


def _property(parameter: Parameter, order: int, is_whole: bool) -> Dict[str, Any]:
    field, kind = parameter.field, parameter.kind
    limits = _limits(field)
    schema: Dict[str, Any] = {"title": parameter.name.replace("_", " ").title(), **kinds.schema_of(kind, limits)}
    if field.choices:
        chosen = _enumeration(parameter) if is_whole else {"$ref": REF % parameter.name}
        schema = {**schema, "items": chosen} if kind.is_list else chosen if is_whole else {"allOf": [chosen]}
    if kind.name != kinds.UNION:
        schema.update(limits.get((kind.inner[0] if kind.is_list else kind).name, {}))
    more = {"description": field.description, "deprecated": field.deprecated}
    schema.update({name: value for name, value in more.items() if value is not None})
    if parameter.default is not None:
        schema["default"] = outputs.plain(parameter.default) if not kind.is_file else str(parameter.default)
    if kind.optional:
        schema["nullable"] = True
    return {**schema, "x-order": order}


def _limits(field: Any) -> Dict[str, Dict[str, Any]]:
    """What `Input(...)` says of values, by the names of the kinds that it is said of."""
    numbers = {"minimum": field.ge, "maximum": field.le}
    texts = {"minLength": field.min_length, "maxLength": field.max_length, "pattern": field.regex}
    of_number, of_text = (
        {name: value for name, value in limits.items() if value is not None} for limits in (numbers, texts)
    )
    return {"int": of_number, "float": of_number, "str": of_text, "secret": of_text}


def choices(signature: Signature) -> Dict[str, Any]:
    """A schema for each input with choices."""
    return {parameter.name: _enumeration(parameter) for parameter in signature.parameters if parameter.field.choices}


def _enumeration(parameter: Parameter) -> Dict[str, Any]:
    kind = parameter.kind.inner[0] if parameter.kind.is_list else parameter.kind
    return {
        "title": parameter.name, "enum": list(parameter.field.choices),
        "type": kinds.SCHEMAS.get(kind.name, {}).get("type", "string"), "description": "An enumeration.",
    }  # fmt: skip


def output_schema(annotation: Any, title: str = "Output") -> Dict[str, Any]:
    """The schema `Output`, for the annotation of the result."""
    return {"title": title, **_of(annotation)}


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


def document(signature: Signature, training: Optional[Signature] = None) -> Dict[str, Any]:
    """The whole document; `training` is the signature of the function that trains, where there is one."""
    shown = [(PREDICTIONS, signature)] + ([(TRAININGS, training)] if training is not None else [])
    schemas: Dict[str, Any] = {
        "Status": {"title": "Status", "enum": STATUSES, "type": "string", "description": "An enumeration."},
        "WebhookEvent": {"title": "WebhookEvent", "enum": EVENTS, "type": "string",
                         "description": "An enumeration."},
    }  # fmt: skip
    paths: Dict[str, Any] = {
        "/": {"get": {"summary": "Root", "responses": PLAIN_ANSWER}},
        "/health-check": {"get": {"summary": "Healthcheck", "responses": PLAIN_ANSWER}},
    }
    for wording, own in reversed(shown):
        # Last that of predictions: where both have an input of one name with choices, its choices are shown.
        schemas.update(_schemas(wording, own))
    for wording, _ in shown:
        paths.update(_paths(wording))
    return {
        "openapi": "3.0.2",
        "info": {"title": "Cog", "version": "0.1.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schemas(wording: Wording, signature: Signature) -> Dict[str, Any]:
    given, made = wording.of_values + "Input", wording.of_values + "Output"
    request, response = wording.prefix + "Request", wording.prefix + "Response"
    return {
        given: input_schema(signature, given),
        made: output_schema(signature.output, made),
        request: {"title": request, "type": "object", "properties": _request(given)},
        response: {"title": response, "type": "object", "properties": _response(given, made)},
        **choices(signature),
    }


def _request(given: str) -> Dict[str, Any]:
    events = {"type": "array", "items": {"$ref": REF % "WebhookEvent"}, "default": EVENTS}
    return {
        "input": {"$ref": REF % given},
        "id": {"title": "Id", "type": "string"},
        "created_at": {"title": "Created At", "type": "string", "format": "date-time"},
        "output_file_prefix": {"title": "Output File Prefix", "type": "string"},
        "webhook": {"title": "Webhook", "type": "string", "format": "uri"},
        "webhook_events_filter": events,
    }


def _response(given: str, made: str) -> Dict[str, Any]:
    moments = {name: {"type": "string", "format": "date-time"} for name in ("created_at", "started_at", "completed_at")}
    texts = {name: {"type": "string"} for name in ("id", "version", "logs", "error")}
    return {
        "input": {"$ref": REF % given},
        "output": {"$ref": REF % made},
        **texts,
        **moments,
        "status": {"$ref": REF % "Status"},
        "metrics": {"title": "Metrics", "type": "object"},
    }


def _paths(wording: Wording) -> Dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"$ref": REF % (wording.prefix + "Request")}}}}
    answer = {"200": {"description": "Successful Response", "content": {
        "application/json": {"schema": {"$ref": REF % (wording.prefix + "Response")}}}}}  # fmt: skip
    name = wording.noun + "_id"
    named: List[Dict[str, Any]] = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}}]
    many, single = "/%ss" % wording.noun, "/%ss/{%s}" % (wording.noun, name)
    again = wording.verb + " Idempotent"
    return {
        many: {"post": {"summary": wording.verb, "requestBody": body, "responses": answer}},
        single: {"put": {"summary": again, "parameters": named, "requestBody": body, "responses": answer}},
        single + "/cancel": {"post": {"summary": wording.cancel, "parameters": named, "responses": PLAIN_ANSWER}},
    }
