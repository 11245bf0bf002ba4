"""The arguments of a script's function: the fields of a request for them, and how they are taken from it.

They are taken by name, from a JSON object, a form, the query and the free segments of a path. Where there is only one
parameter, and it takes objects, the body is its value; where it takes something else, a body that is no object may be
its value.
"""

from __future__ import annotations

import types
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from panglot_worker.bodies import codec
from panglot_worker.bodies.codec import Body, File, Limits
from panglot_worker.errors import ClientError
from panglot_worker.hints.kind import Kind, Reader, Schema
from panglot_worker.hints.kinds.objects import Fields, NamedKind
from panglot_worker.hints.kinds.scalars import ANYTHING
from panglot_worker.hints.kinds.unions import Patience
from panglot_worker.hints.misfit import InvalidInput, Misfit, shown

TOO_DEEP = "the body is nested too deep"
TWICE = "is given twice, in the body and in the query"
NOTHING: Mapping[str, Any] = types.MappingProxyType({})


class Arguments:
    """The arguments that one function takes. Made by `functions.typed`."""

    def __init__(self, fields: Fields, definitions: Dict[str, Schema], patience: Patience,
                 in_path: Sequence[NamedKind] = (), has_body: bool = True) -> None:  # fmt: skip
        self.fields = fields
        self.path = Fields(in_path) if in_path else None
        """The parameters that come from the path."""
        self.has_body = has_body and bool(fields.fields or fields.others)
        """Whether a body is read; a body that no parameter takes is ignored."""
        self.definitions = definitions
        self.patience = patience
        self.names: List[str] = list(fields.fields)
        self.lone = self.names[0] if len(self.names) == 1 and fields.others is None else ""
        self.whole: Optional[Kind] = None
        """The only parameter, where the body is its value."""
        if self.lone and (fields.fields[self.lone].kind.is_object or self._takes_anything(has_body)):
            self.whole = fields.fields[self.lone].kind
        self.file = _only(field for field in fields.fields.values() if field.kind.is_file)
        """The parameter that a body which is neither JSON nor a form goes to."""
        self.text = _only(field for field in fields.fields.values() if field.kind.exact is str)
        """The parameter that a body of plain text goes to."""

    def _takes_anything(self, has_body: bool) -> bool:
        """Whether the only parameter outside of the path has no hint: it gets the body as it is."""
        return has_body and self.path is not None and self.fields.fields[self.lone].kind is ANYTHING

    def of_route(
        self, segments: Mapping[str, str], content_type: str, body: Body, query: bytes, limits: Limits,
        views: Optional[List[Any]] = None,
    ) -> Dict[str, Any]:  # fmt: skip
        """Like `of_request`, with the free segments of the path. A body that no parameter takes is ignored."""
        values = self.of_request(content_type, body if self.has_body else b"", query, limits, views)
        if self.path is None:
            return values
        try:
            return {**values, **self.path.parse(segments)}
        except Misfit as misfit:
            raise InvalidInput(misfit) from None

    def of_request(
        self, content_type: str, body: Body, query: bytes, limits: Limits, views: Optional[List[Any]] = None
    ) -> Dict[str, Any]:
        """The arguments that a request gives, by name; for `views` see `codec.decode`.

        Raises ClientError: 422 with all values that do not fit.
        """
        # By the size: a long honest body tries many alternatives too.
        self.patience.renew(len(body) + len(query))
        try:
            queried = codec.query_fields(query, limits) if query else NOTHING
            if not len(body):
                return self._of_fields({}, queried)
            value, is_form = codec.decode_noting_form(content_type, body, limits, views)
            if is_form:
                return self._of_fields(value, queried)
            return self.of_value(value, queried)
        except Misfit as misfit:
            raise InvalidInput(misfit) from None
        except RecursionError:
            raise ClientError(TOO_DEEP, 413) from None

    def of_tensors(self, arrays: Dict[str, Any]) -> Dict[str, Any]:
        """The arguments that arrays give, by name, or the only one; as lists or numbers where the hints say these."""
        if self.lone and self.whole is None and len(arrays) == 1:
            arrays = dict(zip([self.lone], arrays.values()))
        fields = self.fields.fields
        try:
            return self.of_value({
                name: _plain(array, fields[name].kind) if name in fields else array for name, array in arrays.items()
            })  # fmt: skip
        except Misfit as misfit:
            raise InvalidInput(misfit) from None

    def of_value(self, value: Any, queried: Mapping[str, Any] = NOTHING) -> Dict[str, Any]:
        """The arguments that a JSON value, or a script's example, and the fields of a query give. Raises Misfit."""
        if self.whole is not None:
            if queried:
                raise Misfit(wrong=[((name,), "is in the query; send it in the body") for name in queried])
            return {self.lone: self.whole.convert(value)}
        if type(value) is dict:
            return self._mixed(value, queried, self.fields.converters) if queried else self.fields.convert(value)
        if isinstance(value, File):
            return self._mixed(self._of_file(value), queried, self.fields.parsers)
        if self.lone:
            return self._mixed({self.lone: value}, queried, self.fields.converters)
        raise Misfit("must be an object with the fields %s, not %s" % (", ".join(self.names), shown(value)))

    def _of_fields(self, given: Mapping[str, Any], queried: Mapping[str, Any]) -> Dict[str, Any]:
        """The arguments of a form and a query, both of texts."""
        if self.whole is None:
            return self._mixed(given, queried, self.fields.parsers)
        if not given and not queried and not self.fields.required:
            return {}
        twice = given.keys() & queried.keys()
        if twice:
            raise Misfit(wrong=[((name,), TWICE) for name in twice])
        return {self.lone: self.whole.parse({**given, **queried})}

    def _of_file(self, file: File) -> Dict[str, Any]:
        """A body that is a file, or a text, as the field it is for."""
        if self.file:
            return {self.file: file}
        if self.text and file.type == "text/plain":
            return {self.text: _text(file.bytes)}
        names = ", ".join(self.names)
        raise ClientError("a body of type %s has no fields; send %s as JSON or in a form" % (file.type, names), 415)

    def _mixed(
        self, given: Mapping[str, Any], queried: Mapping[str, Any], readers: Mapping[str, Reader]
    ) -> Dict[str, Any]:
        """The arguments of a body, read in its own way, and a query, read as texts."""
        if not queried:
            return self.fields.read(given, readers, self._other(readers))
        parsers = self.fields.parsers
        both = {**readers, **{name: parsers[name] for name in queried if name in parsers}}
        both.update({name: _refuse_twice for name in queried if name in given})
        return self.fields.read({**given, **queried}, both, self._other(parsers))

    def _other(self, readers: Mapping[str, Reader]) -> Optional[Reader]:
        others = self.fields.others
        return others and (others.parse if readers is self.fields.parsers else others.convert)

    # Descriptions

    def schema(self) -> Schema:
        """The schema of a request's body, with the classes it refers to in `$defs`."""
        if self.whole is not None:
            schema = self._resolved(self.whole.schema)
        else:
            schema = self.fields.schema()
            if self.lone:
                schema = {"anyOf": [schema, self.fields.fields[self.lone].kind.schema]}
        used = self._used(schema)
        return {**schema, "$defs": used} if used else schema

    def _resolved(self, schema: Schema) -> Schema:
        name = schema.get("$ref", "").rpartition("/")[2]
        return self.definitions[name] if name else schema

    def _used(self, schema: Schema) -> Dict[str, Schema]:
        """The definitions that a schema refers to, and those that they refer to."""
        used: Dict[str, Schema] = {}
        waiting = [schema]
        while waiting:
            for name in _references(waiting.pop()):
                if name in self.definitions and name not in used:
                    used[name] = self.definitions[name]
                    waiting.append(used[name])
        return used

    def example(self) -> Any:
        """A value that a request may have as its body; with Files in it, the fields of a form."""
        return self.fields.fields[self.lone].kind.example if self.whole is not None else self.fields.example()


def _only(fields: Iterable[NamedKind]) -> str:
    """The name of the only parameter, or of the only one of them that must be there."""
    those = list(fields)
    needed = [field for field in those if field.required]
    return next((few[0].name for few in (those, needed) if len(few) == 1), "")


def _plain(value: Any, kind: Kind) -> Any:
    """An array, as it is for hints that take arrays; else its lists, or its only number."""
    if kind.is_array or not kind.schema or not hasattr(value, "tolist"):
        return value
    return value.item() if kind.exact is not None and value.size == 1 else value.tolist()


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ClientError("the text is not UTF-8") from None


def _refuse_twice(value: Any) -> Any:
    raise Misfit(TWICE)


def _references(schema: Any) -> List[str]:
    """The names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        return [name for each in schema for name in _references(each)]
    if not isinstance(schema, dict):
        return []
    names = [name for each in schema.values() for name in _references(each)]
    reference = schema.get("$ref")
    return [*names, reference.rpartition("/")[2]] if isinstance(reference, str) else names
