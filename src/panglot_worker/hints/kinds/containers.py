"""Lists, sets, tuples and dicts of other kinds."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

from panglot_worker.hints.kind import NO_EXAMPLE, Kind, Reader, Schema, json_value
from panglot_worker.hints.misfit import Gathering, Misfit, must_be

LIST, OBJECT = "a list", "an object"


def of_list(item: Kind, make: Callable[[List[Any]], Any] = list) -> Kind:
    """A list, or an object that `make` makes of a list, such as a set."""
    read_item, exact = item.convert, item.exact
    parse_item = _bracketed(read_item) if item.is_list else item.parse

    def convert(value: Any) -> Any:
        if type(value) is not list:
            value = _as_list(value, make)
        if exact is not None and set(map(type, value)) == {exact}:
            return value if make is list else _made(make, value)
        return _made(make, _read_all(value, read_item))

    def parse(value: Any) -> Any:
        return _made(make, parse_items(value, convert_items, parse_item))

    def convert_items(value: Any) -> List[Any]:
        return _read_all(_as_list(value, list), read_item)

    schema: Schema = {"type": "array", "items": item.schema}
    if make is not list:
        schema["uniqueItems"] = True
    return Kind(LIST, convert, parse, schema, [] if item.example is NO_EXAMPLE else [item.example], is_list=True)


def _bracketed(convert: Reader) -> Reader:
    """The reader for a list inside of a list, from a form: it must have its brackets, or it could be the outer list."""
    return lambda value: convert(json_value(value, LIST))


def _as_list(value: Any, make: Any) -> List[Any]:
    if isinstance(value, (list, tuple, make)):
        return [*value]
    raise must_be(LIST, value)


def _made(make: Callable[[List[Any]], Any], items: List[Any]) -> Any:
    if make is list:
        return items
    try:
        return make(items)
    except TypeError:
        raise Misfit("holds what cannot be in a set") from None


def _read_all(values: Iterable[Any], read: Reader) -> List[Any]:
    """Every value, read once. Raises Misfit with all values that are wrong, however deep inside."""
    result: List[Any] = []
    rest = iter(values)
    try:
        for value in rest:
            result.append(read(value))  # noqa: PERF401  what was read before the exception is used
    except Misfit as first:
        gathering = Gathering()
        gathering.add(len(result), first)
        for index, value in enumerate(rest, len(result) + 1):
            if gathering.full:
                break
            try:
                read(value)
            except Misfit as another:
                gathering.add(index, another)
        raise gathering.misfit() from None
    return result


def parse_items(value: Any, convert: Reader, parse: Reader) -> List[Any]:
    """The items of a form field: a field sent several times, a text that is a JSON list, or one item."""
    if isinstance(value, list):
        return _read_all(value, parse)
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            items = json_value(value, LIST)
        except Misfit:
            pass  # a text that only begins like a list
        else:
            return convert(items)  # type: ignore[no-any-return]
    return _read_all([value], parse)


def of_tuple(items: Sequence[Kind]) -> Kind:
    """A tuple of so many values, each of its own kind."""
    expects = "a list of %d values" % len(items)

    def read(values: Sequence[Any], readers: Iterable[Reader]) -> Tuple[Any, ...]:
        if len(values) != len(items):
            raise Misfit("must be %s, not of %d" % (expects, len(values)))
        queue = iter(readers)
        return tuple(_read_all(values, lambda value: next(queue)(value)))

    def convert(value: Any) -> Tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise must_be(expects, value)
        return read(value, [item.convert for item in items])

    def parse(value: Any) -> Tuple[Any, ...]:
        if isinstance(value, list):
            return read(value, [item.parse for item in items])
        return convert(json_value(value, expects))

    schema: Schema = {"type": "array", "minItems": len(items), "maxItems": len(items)}
    if items:
        schema["prefixItems"] = [item.schema for item in items]
    examples = [item.example for item in items]
    return Kind(expects, convert, parse, schema, NO_EXAMPLE if NO_EXAMPLE in examples else examples)


def of_dict(value_kind: Kind, key_kind: Kind) -> Kind:
    """A dict, with keys of one kind, read from the texts of a JSON object, and values of one kind."""
    read_key, read_value, parse_value = key_kind.parse, value_kind.convert, value_kind.parse

    def read(value: Dict[str, Any], reader: Reader) -> Dict[Any, Any]:
        gathering = Gathering()
        result: Dict[Any, Any] = {}
        for key, item in value.items():
            try:
                result[read_key(key) if type(key) is str else key_kind.convert(key)] = reader(item)
            except Misfit as misfit:
                gathering.add(str(key), misfit)
                if gathering.full:
                    break
        if gathering.wrong:
            raise gathering.misfit()
        return result

    def convert(value: Any) -> Dict[Any, Any]:
        if not isinstance(value, dict):
            raise must_be(OBJECT, value)
        return read(value, read_value)

    def parse(value: Any) -> Dict[Any, Any]:
        return read(value, parse_value) if isinstance(value, dict) else convert(json_value(value, OBJECT))

    schema = {"type": "object", "additionalProperties": value_kind.schema or True}
    name = "name" if key_kind.exact is str else str(key_kind.example)
    example = {} if value_kind.example is NO_EXAMPLE else {name: value_kind.example}
    return Kind(OBJECT, convert, parse, schema, example, is_object=True)
