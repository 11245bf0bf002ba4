"""Objects with named fields: dataclasses, NamedTuples, TypedDicts, and the arguments of a function."""

from __future__ import annotations

import difflib
import enum
from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Optional

from panglot_worker.hints.kind import NO_EXAMPLE, Kind, Reader, Schema, json_value
from panglot_worker.hints.kinds import choices
from panglot_worker.hints.misfit import Gathering, Misfit, must_be

OBJECT = "an object"
LONGEST_NAME = 60
"""No similar name is looked for if a name is longer: it would take long."""
NO_DEFAULT = object()


class NamedKind(NamedTuple):
    """One field."""

    name: str
    kind: Kind
    required: bool = True
    default: Any = NO_DEFAULT
    """Shown in the schema, where JSON can hold it."""


class Fields:
    """The fields of an object, and how to read them."""

    def __init__(self, fields: Iterable[NamedKind], others: Optional[Kind] = None) -> None:
        self.fields = {field.name: field for field in fields}
        self.others = others
        """The kind of further fields, which `**options` of a function takes; None: there may be none."""
        self.required = frozenset(name for name, field in self.fields.items() if field.required)
        self.converters = {name: field.kind.convert for name, field in self.fields.items()}
        self.parsers = {name: field.kind.parse for name, field in self.fields.items()}

    def convert(self, values: Mapping[str, Any]) -> Dict[str, Any]:
        return self.read(values, self.converters, self.others and self.others.convert)

    def parse(self, values: Mapping[str, Any]) -> Dict[str, Any]:
        return self.read(values, self.parsers, self.others and self.others.parse)

    def read(self, values: Mapping[str, Any], readers: Mapping[str, Reader], other: Optional[Reader]) -> Dict[str, Any]:
        """Every field read. Raises Misfit with all that are wrong, unknown or missing."""
        result: Dict[str, Any] = {}
        gathering: Optional[Gathering] = None
        for name, value in values.items():
            reader = readers.get(name, other)
            try:
                if reader is None:
                    raise Misfit(self._unknown(name))
                result[name] = reader(value)
            except Misfit as misfit:
                gathering = gathering or Gathering()
                gathering.add(name, misfit)
                if gathering.full:
                    break
        if gathering is not None or not self.required <= values.keys():
            raise self._misfit(gathering or Gathering(), values)
        return result

    def _misfit(self, gathering: Gathering, values: Mapping[str, Any]) -> Misfit:
        for name, field in self.fields.items():
            if field.required and name not in values:
                gathering.say(name, "is missing; it must be %s" % field.kind.expects)
        return gathering.misfit()

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.fields, 1) if len(name) <= LONGEST_NAME else []
        if near:
            return "is not known; did you mean %s?" % near[0]
        known = ", ".join(list(self.fields)[:20])
        return "is not known; there are only: %s" % known if known else "is not known; no fields are taken"

    def may_fit(self, value: Any) -> bool:
        """Whether an object has the right names, and the right values where these are few."""
        if not isinstance(value, dict) or not self.required <= value.keys():
            return False
        fields = self.fields
        for name, item in value.items():
            if name not in fields:
                if self.others is None:
                    return False
            else:
                look = fields[name].kind.may_fit
                if look is not None and "enum" in fields[name].kind.schema and not look(item):
                    return False
        return True

    def schema(self) -> Schema:
        properties = {name: _with_default(field) for name, field in self.fields.items()}
        schema: Schema = {"type": "object", "properties": properties}
        if self.required:
            schema["required"] = [name for name in self.fields if name in self.required]
        schema["additionalProperties"] = False if self.others is None else self.others.schema or True
        return schema

    def example(self) -> Any:
        """An object with every field that must be there, and the defaults of the others."""
        example: Dict[str, Any] = {}
        for name, field in self.fields.items():
            if field.required:
                if field.kind.example is NO_EXAMPLE:
                    return NO_EXAMPLE
                example[name] = field.kind.example
            elif is_json(_spelled(field.default)):
                example[name] = _listed(_spelled(field.default))
        return example


def _with_default(field: NamedKind) -> Schema:
    default = _spelled(field.default)
    if field.required or not is_json(default) or "$ref" in field.kind.schema:
        return field.kind.schema
    return {**field.kind.schema, "default": _listed(default)}


def _spelled(default: Any) -> Any:
    """A default as a request spells it: a member of an Enum by its value, or by its name where JSON has no such."""
    if not isinstance(default, enum.Enum):
        return default
    plain = all(type(member.value) in choices.PLAIN for member in type(default))
    return default.value if plain else default.name


def is_json(value: Any) -> bool:
    """Whether JSON can hold a default as it is."""
    if isinstance(value, (list, tuple)):
        return all(is_json(item) for item in value)
    return type(value) in (str, int, bool, type(None)) or (type(value) is float and value - value == 0)


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def of_object(fields: Fields, make: Callable[..., Any], schema: Schema) -> Kind:
    """The kind of objects with these fields: `make`, a class, is called with them by name."""

    def convert(value: Any) -> Any:
        if type(value) is dict:
            return made(make, fields.convert(value))
        if isinstance(make, type) and isinstance(value, make):
            return value
        raise must_be(OBJECT, value)

    def parse(value: Any) -> Any:
        if isinstance(value, dict):
            return made(make, fields.parse(value))
        return convert(json_value(value, OBJECT))

    return Kind(OBJECT, convert, parse, schema, fields.example(), is_object=True, may_fit=fields.may_fit)


def made(make: Callable[..., Any], values: Dict[str, Any]) -> Any:
    """The object. Raises Misfit where the class refuses its fields, by ValueError or an assertion."""
    try:
        return make(**values)
    except (ValueError, AssertionError) as error:
        raise Misfit("is refused: %s" % (str(error)[:400] or type(error).__name__)) from None
