"""pydantic models, of version 2 or 1, where the script's environment has them. Their own rules hold.

There is one difference: a field that the model does not know is refused, unless the model has a rule for such fields.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, FrozenSet, List, Optional

from panglot_worker.bodies.codec import convert as towards_json
from panglot_worker.hints.kind import Kind, Schema, json_value
from panglot_worker.hints.misfit import Gathering, Misfit, Wrong, must_be

OBJECT = "an object"
REFERENCE = "#/$defs/{model}"


def is_model(hint: Any) -> bool:
    pydantic: Any = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel)


def of_model(model: Any, definitions: Dict[str, Schema]) -> Kind:
    """The kind of a pydantic model; the types its schema refers to are added to the definitions."""
    pydantic: Any = sys.modules["pydantic"]
    validate, known = _validate(model), _known(model)
    texts = _texts(model)

    def convert(value: Any) -> Any:
        if isinstance(value, model):
            return value
        if not isinstance(value, dict):
            raise must_be(OBJECT, value)
        if known is not None and not value.keys() <= known:
            raise _unknown(value, known)
        try:
            return validate(value)
        except pydantic.ValidationError as error:
            raise Misfit(wrong=_wrong(error)) from None

    def parse(value: Any) -> Any:
        if isinstance(value, dict):
            return convert({name: item if name in texts else _likely(item) for name, item in value.items()})
        return convert(json_value(value, OBJECT))

    schema = _schema(model)
    definitions.update(schema.pop("$defs", {}))
    return Kind(OBJECT, convert, parse, schema, _example(schema), is_object=True)


def _validate(model: Any) -> Callable[[Any], Any]:
    if not hasattr(model, "model_validate"):
        return model.parse_obj  # type: ignore[no-any-return]
    if model.model_config.get("strict"):
        # Strictness differs between JSON and objects of Python: only in JSON a string may be a date.
        return lambda value: model.model_validate_json(json.dumps(value, default=towards_json))
    return model.model_validate  # type: ignore[no-any-return]


def _known(model: Any) -> Optional[FrozenSet[str]]:
    """The names of all fields; None where the model takes further ones, or has aliases that are not plain names."""
    if not hasattr(model, "model_fields"):
        return None
    if model.model_config.get("extra") is not None:
        return None
    names = set()
    for name, field in model.model_fields.items():
        alias = field.validation_alias or field.alias or name
        if not isinstance(alias, str):
            return None
        names |= {name, alias}
    return frozenset(names)


def _unknown(value: Dict[str, Any], known: FrozenSet[str]) -> Misfit:
    gathering = Gathering()
    for name in value.keys() - known:
        gathering.say(name, "is not known; there are only: %s" % ", ".join(sorted(known)[:20]))
    return gathering.misfit()


def _wrong(error: Any) -> List[Wrong]:
    return [(tuple(each["loc"]), _sentence(str(each["msg"]))) for each in error.errors()[:50]] or [((), "is refused")]


def _sentence(message: str) -> str:
    return "is wrong: %s" % message[:400]


def _texts(model: Any) -> FrozenSet[str]:
    """The fields that are plain texts, which a form has as they are."""
    fields: Dict[str, Any] = getattr(model, "model_fields", None) or getattr(model, "__fields__", {})
    return frozenset(name for name, field in fields.items() if field.annotation is str)


def _likely(item: Any) -> Any:
    """A form field as a JSON value, if it is one; else as it is, and the model decides."""
    if isinstance(item, str):
        try:
            return json_value(item, "JSON")
        except Misfit:
            pass
    return [_likely(each) for each in item] if isinstance(item, list) else item


def _schema(model: Any) -> Schema:
    if hasattr(model, "model_json_schema"):
        return model.model_json_schema(ref_template=REFERENCE)  # type: ignore[no-any-return]
    schema: Schema = model.schema(ref_template=REFERENCE)
    if "definitions" in schema:
        schema["$defs"] = schema.pop("definitions")
    return schema


def _example(schema: Schema) -> Any:
    """The first example of the model's author, else an object with a guess for each field that must be there."""
    given = schema.get("examples") or ([schema["example"]] if "example" in schema else [])
    if given:
        return given[0]
    properties: Dict[str, Schema] = schema.get("properties", {})
    return {name: _guess(properties.get(name, {})) for name in schema.get("required", ())}


def _guess(schema: Schema) -> Any:
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    guesses = {"integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}, "null": None}
    return schema.get("default", schema.get("const", guesses.get(str(schema.get("type")), "text")))
