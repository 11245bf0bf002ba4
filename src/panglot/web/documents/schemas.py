"""JSON Schemas, as workers make them of type hints, in the words of OpenAPI 3.0."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

Object = dict[str, Any]

INSIDE = ("items", "additionalProperties", "not")
"""Keys of a schema that hold one more schema."""
CHOICES = ("anyOf", "oneOf", "allOf")
"""Keys that hold several."""
WORDS = {
    "additionalProperties", "allOf", "anyOf", "default", "deprecated", "description", "discriminator", "enum",
    "example", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maxProperties",
    "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "nullable", "oneOf",
    "pattern", "properties", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly",
}  # fmt: skip
"""What OpenAPI 3.0 lets a schema say."""
EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
LOCAL, SHARED = "#/$defs/", "#/components/schemas/"


def portable(schema: Object) -> Object:
    """A JSON Schema in the words of OpenAPI 3.0, which has no type `null` and wants `items` in every array."""
    # 3.0 ignores all words beside a reference.
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if schema.get("type") == "null":
        return {"enum": [None]}
    if isinstance(schema.get("type"), list):
        return portable({**schema, "type": None, "anyOf": [{"type": kind} for kind in schema["type"]]})
    result = {key: value for key, value in _reworded(schema).items() if key in WORDS and value is not None}
    if result.get("type") == "array":
        result.setdefault("items", {})
    # Without a format many tools take 32 bits.
    if result.get("type") == "integer":
        result.setdefault("format", "int64")
    result |= {key: portable(result[key]) for key in INSIDE if isinstance(result.get(key), dict)}
    result |= {key: [portable(each) for each in result[key]] for key in ("oneOf", "allOf") if key in result}
    if "properties" in result:
        result["properties"] = {name: portable(field) for name, field in result["properties"].items()}
    return _alternatives(result) if "anyOf" in result else result


def _reworded(schema: Object) -> Object:
    """The schema in the words of 3.0, where 3.0 has other words for the same."""
    result = dict(schema)
    if "const" in result:
        result["enum"] = [result["const"]]
    if result.get("examples"):
        result.setdefault("example", result["examples"][0])
    if "prefixItems" in result:
        result["items"] = any_of(
            [each for at, each in enumerate(result["prefixItems"]) if each not in result["prefixItems"][:at]]
        )
    # In 3.0 these words are flags beside the bound. By `type`, because a bool is an `int` too.
    for word, bound in EXCLUSIVE.items():
        if type(result.get(word)) in (int, float):
            result |= {bound: result[word], word: True}
    return result


def any_of(schemas: list[Object]) -> Object:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _alternatives(schema: Object) -> Object:
    """A schema with alternatives, null among them where it is nullable, and with all its other words."""
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    options = [portable(option) for option in schema["anyOf"] if option.get("type") != "null"]
    if len(options) < len(schema["anyOf"]):
        options = [_or_null(option) for option in options]
    if not options:
        return {"enum": [None], **rest}
    if len(options) > 1:
        return {**rest, "anyOf": options}
    # A reference stands in a list of its own, because all words beside it would be ignored.
    return {"allOf": options, **rest} if "$ref" in options[0] and rest else {**options[0], **rest}


def _or_null(schema: Object) -> Object:
    if "$ref" in schema:
        return {"anyOf": [schema, {"enum": [None]}]}
    result = {**schema, "nullable": True} if "type" in schema else dict(schema)
    if "enum" in schema and None not in schema["enum"]:
        result["enum"] = [*schema["enum"], None]
    return result


def is_binary(schema: Object) -> bool:
    return schema.get("format") == "binary"


def as_base64(schema: Object) -> Object:
    """A schema of JSON: bytes inside of it are sent as base64."""
    if is_binary(schema):
        return {**schema, "format": "byte"}
    result = dict(schema)
    result |= {key: as_base64(schema[key]) for key in INSIDE if isinstance(schema.get(key), dict)}
    if "properties" in schema:
        result["properties"] = {name: as_base64(field) for name, field in schema["properties"].items()}
    if "anyOf" in schema:
        result["anyOf"] = [as_base64(option) for option in schema["anyOf"]]
    return result


class Definitions:
    """The classes of a script, from the `$defs` of its schemas to the components of one document."""

    def __init__(self, taken: Collection[str]) -> None:
        self.taken = taken
        self.schemas: Object = {}

    def resolved(self, api: Mapping[str, Any]) -> Object:
        """A description of an API whose schemas refer to this document's components, not to `$defs` of their own."""
        return {**api, "request_schema": self._taken_out(api.get("request_schema"))}

    def _taken_out(self, schema: Any) -> Any:
        if not isinstance(schema, dict) or not isinstance(schema.get("$defs"), dict):
            return schema
        own = schema["$defs"]
        names: dict[str, str] = {}
        for name, about in own.items():
            names[name] = self._name(name, about, own, names.values())
        for name, about in own.items():
            self.schemas[names[name]] = as_base64(portable(_referring(about, names)))
        return _referring({key: value for key, value in schema.items() if key != "$defs"}, names)

    def _name(self, name: str, about: Object, own: Object, given: Collection[str]) -> str:
        """A name that means this class alone: routes share those that are the same."""
        plain = stem = re.sub(r"[^A-Za-z0-9._-]", "_", name)
        same = as_base64(portable(_referring(about, {each: each for each in own})))
        number = 1
        while plain in self.taken or plain in given or self.schemas.get(plain, same) != same:
            number += 1
            plain = f"{stem}_{number}"
        return plain


def _referring(schema: Any, names: dict[str, str]) -> Any:
    """A schema whose references to `$defs` lead to components of these names."""
    if isinstance(schema, list):
        return [_referring(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _referring(value, names) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(LOCAL):
        name = reference.removeprefix(LOCAL)
        result["$ref"] = SHARED + names.get(name, name)
    return result
