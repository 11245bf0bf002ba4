"""One of several kinds: Optional, Union, `X | Y`.

A value goes to the first alternative, in the order of the hint, that takes it. But if an alternative has exactly its
JSON type, it goes to that one: 1 stays an int in `float | int`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from panglot_worker.errors import ClientError
from panglot_worker.hints.kind import NO_EXAMPLE, Kind, Reader, Schema
from panglot_worker.hints.misfit import Misfit, must_be, shown


class Patience:
    """How many alternatives may still fail in one request: alternatives inside of alternatives multiply."""

    FEW = 1000
    PER_BYTE = 8

    def __init__(self) -> None:
        self.left = self.FEW

    def renew(self, size: int) -> None:
        self.left = self.FEW + self.PER_BYTE * size

    def lose(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ClientError("the body nearly fits too many alternatives of its type, and none wholly", 422)


def of_union(kinds: Sequence[Kind], patience: Patience) -> Kind:
    """The kind of a value that may be any of these."""
    others = [kind for kind in kinds if kind.exact is not type(None)]
    if len(others) == 1 < len(kinds):
        return _or_none(others[0])
    expects = " or ".join(dict.fromkeys(kind.expects for kind in kinds))
    exact: Dict[Any, Reader] = {}
    for kind in kinds:
        if kind.exact is not None:
            exact.setdefault(kind.exact, kind.convert)

    def convert(value: Any) -> Any:
        reader = exact.get(type(value))
        if reader is not None:
            return reader(value)
        likely = [kind for kind in kinds if kind.may_fit is None or kind.may_fit(value)]
        return _first([kind.convert for kind in likely or kinds], value, expects, patience)

    texts = [kind.parse for kind in kinds if kind.exact is not type(None)]

    def parse(value: Any) -> Any:
        # An HTML form cannot send null: an empty field is what comes for it.
        if len(others) < len(kinds) and _is_empty(value) and not any(kind.exact is str for kind in others):
            return None
        return _first(texts, value, expects, patience)

    example = next((kind.example for kind in kinds if kind.example is not NO_EXAMPLE), NO_EXAMPLE)
    schema: Schema = {"anyOf": [kind.schema for kind in kinds]}
    objects = [kind.is_object for kind in others]
    return Kind(expects, convert, parse, schema, example, is_object=any(objects), is_file=any(k.is_file for k in kinds))


def _first(readers: Sequence[Reader], value: Any, expects: str, patience: Patience) -> Any:
    """The result of the first reader that takes the value. Raises the Misfit that tells most, or one for all."""
    inside: List[Misfit] = []
    for reader in readers:
        try:
            return reader(value)
        except Misfit as misfit:
            patience.lose()
            if any(path for path, _ in misfit.wrong):
                inside.append(misfit)
            elif len(readers) == 1:
                raise
    if len(inside) == 1:
        raise inside[0]
    if inside:
        raise Misfit("fits none of the %d objects it may be" % len(inside))
    raise must_be(expects, value)


def takes_null(kind: Kind) -> bool:
    return {"type": "null"} in kind.schema.get("anyOf", ())


def _or_none(kind: Kind) -> Kind:
    """The kind, or null. In a form an empty field, or the word null, is None, except for a text."""
    read, parse_value, expects = kind.convert, kind.parse, kind.expects + " or null"
    takes_text = kind.exact is str

    def convert(value: Any) -> Any:
        if value is None:
            return None
        try:
            return read(value)
        except Misfit as misfit:
            if misfit.wrong == [((), "must be %s, not %s" % (kind.expects, shown(value)))]:
                raise must_be(expects, value) from None
            raise

    def parse(value: Any) -> Any:
        return None if not takes_text and _is_empty(value) else parse_value(value)

    schema = {"anyOf": [kind.schema, {"type": "null"}]}
    example = None if kind.example is NO_EXAMPLE else kind.example
    return kind._replace(expects=expects, convert=convert, parse=parse, schema=schema, example=example, exact=None)


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and value.strip() in ("", "null")
