"""The metadata of `Annotated` for a kind: bounds of numbers and lengths, patterns, descriptions.

They are read by the names of their attributes, as in annotated-types, pydantic and others; nothing is imported. Other
metadata is ignored: it may be for other code that reads the function.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

from panglot_worker.hints.kind import Kind, Reader, Schema
from panglot_worker.hints.misfit import Misfit, quoted, shown

Check = Callable[[Any], None]
"""Raises Misfit for a value out of bounds."""

COMPARED: Tuple[Tuple[str, str, str, Callable[[Any, Any], bool]], ...] = (
    ("ge", "minimum", "at least", lambda value, bound: value >= bound),
    ("gt", "exclusiveMinimum", "more than", lambda value, bound: value > bound),
    ("le", "maximum", "at most", lambda value, bound: value <= bound),
    ("lt", "exclusiveMaximum", "less than", lambda value, bound: value < bound),
)
LENGTHS = {"string": ("minLength", "maxLength"), "object": ("minProperties", "maxProperties")}
UNITS = {"string": "character", "array": "value", "object": "field"}
NEAR = 1e-9


def with_bounds(kind: Kind, metadata: Iterable[Any]) -> Kind:
    """The kind, with all bounds in the metadata of an Annotated that are known. Raises TypeError for bad bounds."""
    schema: Schema = {}
    checks: List[Check] = []
    for said in _flat(metadata):
        for attribute, word, phrase, holds in COMPARED:
            bound = getattr(said, attribute, None)
            if bound is not None:
                schema.update({word: bound} if type(bound) in (int, float) else {})
                checks.append(_compared(bound, phrase, holds))
        checks += _lengths(said, kind, schema)
        checks += _others(said, schema)
        description = getattr(said, "description", None) or getattr(said, "documentation", None)
        if isinstance(description, str):
            schema["description"] = description
    return _bounded(kind, schema, checks) if checks or schema else kind


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    """Each piece of metadata, and the pieces inside of pydantic's `Field`."""
    for said in metadata:
        yield said
        inner = getattr(said, "metadata", None)
        if isinstance(inner, (list, tuple)):
            yield from inner


def _compared(bound: Any, phrase: str, holds: Callable[[Any, Any], bool]) -> Check:
    def check(value: Any) -> None:
        try:
            fits = holds(value, bound)
        except TypeError:
            raise Misfit("cannot be compared with %s" % _words(bound)) from None
        if not fits:
            raise Misfit("must be %s %s, not %s" % (phrase, _words(bound), _words(value)))

    return check


def _words(value: Any) -> str:
    return shown(value) if isinstance(value, (int, float, str)) else str(value)[:60]


def _lengths(said: Any, kind: Kind, schema: Schema) -> List[Check]:
    """The bounds of a length: of a text, a list, an object or a file."""
    least, most = getattr(said, "min_length", None), getattr(said, "max_length", None)
    of = _type(kind.schema)
    is_binary = kind.schema.get("format") == "binary"
    unit = "byte" if is_binary else UNITS.get(of, "value")
    words = LENGTHS.get(of, ("minItems", "maxItems"))
    checks: List[Check] = []
    if type(least) is int and least > 0:
        schema.update({} if is_binary else {words[0]: least})
        checks.append(_length(lambda size: size >= least, "at least " + _counted(least, unit)))
    if type(most) is int:
        schema.update({} if is_binary else {words[1]: most})
        checks.append(_length(lambda size: size <= most, "at most " + _counted(most, unit)))
    return checks


def _counted(number: int, unit: str) -> str:
    return "%d %s%s" % (number, unit, "" if number == 1 else "s")


def _length(holds: Callable[[int], bool], phrase: str) -> Check:
    def check(value: Any) -> None:
        if not holds(len(value)):
            raise Misfit("must have %s, not %d" % (phrase, len(value)))

    return check


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return "object"
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    return str(options[0].get("type", "")) if options else ""


def _others(said: Any, schema: Schema) -> List[Check]:
    """Multiples, patterns and predicates."""
    checks: List[Check] = []
    multiple, pattern, predicate = (getattr(said, name, None) for name in ("multiple_of", "pattern", "func"))
    if multiple is not None:
        schema["multipleOf"] = multiple
        checks.append(_multiple(multiple))
    if isinstance(said, re.Pattern):
        pattern = said
    if pattern is not None:
        compiled = re.compile(pattern)
        schema["pattern"] = compiled.pattern
        checks.append(_pattern(compiled))
    if callable(predicate) and type(said).__name__ in ("Predicate", "Not"):
        checks.append(_predicate(said, predicate))
    return checks


def _multiple(of: Any) -> Check:
    def check(value: Any) -> None:
        ratio = value / of
        if (value % of) if isinstance(value, int) and isinstance(of, int) else abs(ratio - round(ratio)) > NEAR:
            raise Misfit("must be a multiple of %s, not %s" % (_words(of), _words(value)))

    return check


def _pattern(compiled: Any) -> Check:
    def check(value: Any) -> None:
        if compiled.search(value) is None:
            raise Misfit("must match the pattern %s" % quoted(compiled.pattern))

    return check


def _predicate(said: Any, predicate: Callable[[Any], Any]) -> Check:
    wanted = type(said).__name__ != "Not"
    name = getattr(predicate, "__name__", "the script's test")

    def check(value: Any) -> None:
        if bool(predicate(value)) is not wanted:
            raise Misfit("does not pass %s" % name if wanted else "must not pass %s" % name)

    return check


def _bounded(kind: Kind, schema: Schema, checks: List[Check]) -> Kind:
    """The kind with further checks, which null passes where the kind takes it."""

    def checked(reader: Reader) -> Reader:
        def read(value: Any) -> Any:
            result = reader(value)
            if result is not None:
                for check in checks:
                    check(result)
            return result

        return read

    return kind._replace(
        convert=checked(kind.convert) if checks else kind.convert,
        parse=checked(kind.parse) if checks else kind.parse,
        schema=_joined(kind.schema, schema),
        example=_example(kind, schema),
        exact=None if checks else kind.exact,
    )


def _joined(schema: Schema, more: Schema) -> Schema:
    if "$ref" in schema:
        return {"allOf": [schema], **more}
    if "anyOf" not in schema:
        return {**schema, **more}
    options = [option if option.get("type") == "null" else {**option, **more} for option in schema["anyOf"]]
    return {**schema, "anyOf": options}


def _example(kind: Kind, schema: Schema) -> Any:
    """An example within simple bounds; for other bounds the kind's own example, which may not fit them."""
    example = kind.example
    if type(example) in (int, float):
        return _number_within(example, schema)
    if type(example) is str and "pattern" not in schema:
        least, most = schema.get("minLength", 0), schema.get("maxLength", len(example) + 8)
        return (example + "." * (least - len(example)))[: max(most, 0)]
    if type(example) is list and example:
        return (example * max(schema.get("minItems", 1), 1))[: max(schema.get("minItems", 1), 1)]
    return example


def _number_within(example: Any, schema: Dict[str, Any]) -> Any:
    """A number in the middle of both bounds, or next to the only one."""
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None and high is not None:
        example = (low + high) / 2 if isinstance(example, float) else (low + high + 1) // 2
    elif low is not None and example <= low:
        example = low + (step if "exclusiveMinimum" in schema else 0)
    elif high is not None and example >= high:
        example = high - (step if "exclusiveMaximum" in schema else 0)
    if "multipleOf" in schema:
        example = -(-example // step) * step
    return example
