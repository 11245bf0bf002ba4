"""The bodies that a script takes and gives, in the words of OpenAPI 3.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from panglot.web.documents.schemas import Object, any_of, as_base64, is_binary, portable

JSON, FORM, BYTES = "application/json", "multipart/form-data", "application/octet-stream"
EVENTS, JSON_LINES = "text/event-stream", "application/x-ndjson"
BINARY = {"type": "string", "format": "binary"}


def request_content(api: Object) -> Object:
    """The bodies the script takes, by media type: from its hints, else from its example, else anything."""
    schema = portable(sendable(api.get("request_schema"), {}))
    example: Object = sendable(api.get("example"), None) or {}
    kind = example.get("kind")
    if schema and api.get("request_types") == [FORM] and "properties" in schema:
        return _form(schema, example)
    if schema:
        return _hinted(schema, example, bool(api.get("files_in_json")))
    if kind == "form":
        fields = dict.fromkeys(example["files"], BINARY) | {name: {"type": "string"} for name in example["fields"]}
        return _form({"type": "object", "properties": fields, "required": list(example["files"])}, example)
    if kind == "file":
        return _raw(example)
    if kind == "json":
        return {JSON: _value({}, example)}
    anything: Object = {JSON: {"schema": {}}, FORM: {"schema": {"type": "object"}}, BYTES: {"schema": BINARY}}
    # A platform may name further types, such as text/csv: of these only the bytes are known.
    return {media: anything.get(media, {"schema": BINARY}) for media in api.get("request_types") or anything}


def file_content(types: Iterable[str]) -> Object:
    """A body that is one file of any of these types."""
    return {media: {"schema": BINARY} for media in types}


def _hinted(schema: Object, example: Object, files_in_json: bool) -> Object:
    """The bodies that a schema describes: one file, a form with files, or JSON, which may hold them as base64."""
    content: Object = {}
    values: list[Object] = []
    for option in schema.get("anyOf", [schema]):
        if is_binary(option):
            content |= _raw(example)
        elif any(_takes_file(field) for field in option.get("properties", {}).values()):
            content |= _form(option, example)
            values += [as_base64(option)] if files_in_json else []
        else:
            values.append(option)
    return content | ({JSON: _value(any_of(values), example)} if values else {})


def _value(schema: Object, example: Object) -> Object:
    return {"schema": schema, **({"example": example["value"]} if example.get("kind") == "json" else {})}


def _raw(example: Object) -> Object:
    """A body that is one file: as the example has it, as anything alike, or as plain bytes."""
    content_type = str(example.get("type") or "") if example.get("kind") == "file" else ""
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


def _takes_file(schema: Object) -> bool:
    options = [schema, schema.get("items", {}), *schema.get("anyOf", [])]
    return any(is_binary(option) for option in options)


def answer_content(api: Object) -> Object:
    """The bodies the script answers with, by media type."""
    if api.get("streams"):
        # Tools disagree whether this is the schema of the whole or of one event, so it fits both.
        return {EVENTS: {"schema": {}}, JSON_LINES: {"schema": {}}}
    return _result_content(portable(sendable(api.get("response_schema"), {})))


def _result_content(schema: Object) -> Object:
    """JSON as the hints say; bytes with a type of the script's choice where they may be the result."""
    options = schema.get("anyOf", [schema])
    values = [as_base64(option) for option in options if not is_binary(option)]
    content: Object = {}
    if values:
        content[JSON] = {"schema": any_of(values)}
    if any(is_binary(option) or _may_be_bytes(option) for option in options):
        content[BYTES] = content["*/*"] = {"schema": BINARY}
    return content


def _may_be_bytes(schema: Object) -> bool:
    """Whether a value may be bytes: anything may, and so may a pair, of bytes and their content type."""
    return not schema or (schema.get("type") == "array" and schema.get("maxItems") == 2)


def sendable(value: Any, otherwise: Any) -> Any:
    """The value, if JSON can hold it."""
    try:
        orjson.dumps(value)
    except TypeError:
        return otherwise
    return value if value is not None else otherwise
