"""Makes the kind of a type hint."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import typing
from typing import Any, Dict, List, Optional, Tuple

from panglot_worker.bodies.codec import File
from panglot_worker.hints.bounds import with_bounds
from panglot_worker.hints.kind import Kind, Schema
from panglot_worker.hints.kinds import choices, containers, models, scalars, spelled, unions, uploads
from panglot_worker.hints.kinds.arrays import of_array
from panglot_worker.hints.kinds.objects import NO_DEFAULT, Fields, NamedKind, of_object
from panglot_worker.hints.spelling import (
    Unclear,
    annotated,
    evaluated,
    global_names,
    hints_of,
    is_form,
    is_typed_dict,
    is_union,
    signature,
    typed_dict_fields,
    written,
)

FIX = "use a hint that docs/reference/typed.md lists, or leave it out to get the value as it is"
SIMPLE = (*scalars.SCALARS, *spelled.SPELLED, (File, uploads.OF_FILE), (bytes, uploads.OF_BYTES))
LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable,
         collections.abc.Collection)  # fmt: skip
SETS = {set: set, frozenset: frozenset, collections.abc.Set: frozenset, collections.abc.MutableSet: set}
DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class Builder:
    """Builds the kinds of one function's hints; each class of the script once, so that it may contain itself."""

    def __init__(self) -> None:
        self.patience = unions.Patience()
        self.definitions: Dict[str, Schema] = {}
        """The schemas of the script's classes, by the names that `$ref` uses."""
        self.calls_script = False
        """Whether reading a value may call code of the script: one of its classes, or a check in an Annotated."""
        self._built: Dict[type, Kind] = {}

    def kind(self, hint: Any, what: str) -> Kind:
        """The kind of a hint; `what` says whose hint it is. Raises Unclear."""
        hint, metadata = annotated(hint)
        inner = _unwrapped(hint)
        if inner is not hint:
            return self._bounded(self.kind(inner, what), metadata, what)
        for simple, kind in SIMPLE:
            if hint is simple:
                return self._bounded(kind, metadata, what)
        if hint is Any or hint is object or hint is inspect.Parameter.empty:
            return self._bounded(scalars.ANYTHING, metadata, what)
        return self._bounded(self._container(hint, metadata, what), metadata, what)

    def _bounded(self, kind: Kind, metadata: Tuple[Any, ...], what: str) -> Kind:
        if metadata:
            self.calls_script = True
        try:
            return with_bounds(kind, metadata) if metadata else kind
        except Exception as error:
            raise Unclear("what Annotated adds to %s makes no sense: %s" % (what, error), "correct it") from error

    def _container(self, hint: Any, metadata: Tuple[Any, ...], what: str) -> Kind:
        """The kind of a hint that has arguments, or is a class."""
        origin = getattr(hint, "__origin__", None)
        arguments: Tuple[Any, ...] = getattr(hint, "__args__", ()) if origin is not None else ()
        if is_union(hint):
            return unions.of_union([self.kind(each, what) for each in hint.__args__], self.patience)
        if is_form(origin, "Literal"):
            return self._literal(arguments, what)
        if type(hint).__name__ == "ForwardRef":
            raise Unclear("the hint %s of %s is not known there" % (hint, what), "define it in the same file")
        kind = self._generic(hint if origin is None else origin, _without_variables(arguments), metadata, what)
        if kind is None and isinstance(hint, type):
            kind = self._class(hint, what)
        if kind is None:
            raise Unclear("the hint of %s is not a type that a request can have: %s" % (what, written(hint)), FIX)
        return kind

    def _literal(self, arguments: Tuple[Any, ...], what: str) -> Kind:
        for value in arguments:
            if type(value) not in choices.PLAIN and not isinstance(value, enum.Enum):
                raise Unclear("JSON has no way to send the value %r of %s" % (value, what), FIX)
        return choices.of_literal(arguments)

    def _generic(self, origin: Any, arguments: Tuple[Any, ...], metadata: Tuple[Any, ...], what: str) -> Optional[Kind]:
        """The kind of lists, sets, tuples, dicts and arrays; None for anything else."""
        inside = "an item of %s" % what
        if origin in LISTS:
            return containers.of_list(self.kind(arguments[0] if arguments else Any, inside))
        if origin in SETS:
            return containers.of_list(self.kind(arguments[0] if arguments else Any, inside), SETS[origin])
        if origin is tuple:
            return self._tuple(arguments, inside)
        if origin in DICTS:
            key, value = arguments if len(arguments) == 2 else (str, Any)
            return containers.of_dict(self.kind(value, inside), self.kind(key, "a key of %s" % what))
        try:
            return of_array(origin, arguments, metadata)
        except TypeError as error:
            raise Unclear("the hint of %s makes no sense: %s" % (what, error), FIX) from error

    def _tuple(self, arguments: Tuple[Any, ...], inside: str) -> Kind:
        if not arguments:
            return containers.of_list(scalars.ANYTHING, tuple)
        if arguments == ((),):
            return containers.of_tuple([])
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return containers.of_list(self.kind(arguments[0], inside), tuple)
        return containers.of_tuple([self.kind(each, inside) for each in arguments])

    # Classes of the script

    def _class(self, hint: type, what: str) -> Optional[Kind]:
        """The kind of a class; None where a request cannot hold its objects."""
        picture = uploads.of_picture(hint)
        if picture is not None:
            return picture
        self.calls_script = True
        if issubclass(hint, enum.Enum):
            return choices.of_enum(hint)
        if hint in self._built:
            return self._built[hint]
        name = self._reference(hint)
        if models.is_model(hint):
            return self._model(hint, name)
        if dataclasses.is_dataclass(hint) or hasattr(hint, "_field_defaults"):
            return self._fields(hint, name, lambda: self.parameters(hint, hints_of(hint, what)))
        if is_typed_dict(hint):
            return self._fields(hint, name, lambda: self._typed_dict(hint))
        return None

    def _reference(self, hint: type) -> str:
        name, number = hint.__name__, 1
        while name in self.definitions:
            number += 1
            name = "%s_%d" % (hint.__name__, number)
        return name

    def _model(self, hint: type, name: str) -> Kind:
        kind = models.of_model(hint, self.definitions)
        self.definitions[name] = kind.schema
        self._built[hint] = kind._replace(schema={"$ref": "#/$defs/" + name})
        return self._built[hint]

    def _fields(self, hint: type, name: str, fields: Any) -> Kind:
        """The kind of a class with fields. While these are built, a reference stands for it: it may contain itself."""
        reference = {"$ref": "#/$defs/" + name}
        later: List[Kind] = []
        self.definitions[name] = {}
        self._built[hint] = Kind(
            "an object",
            lambda value: later[0].convert(value),
            lambda value: later[0].parse(value),
            reference,
            is_object=True,
            may_fit=lambda value: later[0].may_fit is None or later[0].may_fit(value),
        )
        made = Fields(fields())
        make: Any = dict if is_typed_dict(hint) else hint
        kind = of_object(made, make, reference)
        later.append(kind)
        self.definitions[name] = made.schema()
        self._built[hint] = kind
        return kind

    def _typed_dict(self, hint: Any) -> List[NamedKind]:
        fields = typed_dict_fields(hint)
        return [NamedKind(name, self.kind(inner, "%s.%s" % (hint.__name__, name)), is_required)
                for name, inner, is_required in fields]  # fmt: skip

    def parameters(self, of: Any, hints: Optional[Dict[str, Any]] = None) -> List[NamedKind]:
        """The parameters of a function, or of a class with these hints, that can be given by name. Raises Unclear."""
        named = []
        names = global_names(of) if hints is None else {}
        for name, parameter in signature(of).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            what = name if hints is None else "%s.%s" % (of.__name__, name)
            inherited = (hints or {}).get(name, parameter.empty)
            hint = evaluated(parameter.annotation, names, what) if inherited is parameter.empty else inherited
            named.append(self.named(name, hint, what, parameter))
        return named

    def named(self, name: str, hint: Any, what: str, parameter: inspect.Parameter) -> NamedKind:
        """One parameter. One whose default is None takes null, as if its hint said so."""
        kind = self.kind(hint, what)
        has_default = parameter.default is not parameter.empty
        if parameter.default is None and kind is not scalars.ANYTHING and not unions.takes_null(kind):
            kind = unions.of_union([kind, dict(scalars.SCALARS)[type(None)]], self.patience)
        default = parameter.default if has_default else NO_DEFAULT
        return NamedKind(name, kind, not has_default, default)


def _unwrapped(hint: Any) -> Any:
    """A hint without a wrapping that does not change its meaning: Final, InitVar, NewType, type aliases."""
    if hasattr(hint, "__supertype__"):
        return hint.__supertype__
    if isinstance(hint, dataclasses.InitVar):
        return hint.type
    if type(hint).__name__ == "TypeAliasType":
        return hint.__value__
    origin: Any = getattr(hint, "__origin__", None)
    if type(origin).__name__ == "TypeAliasType":
        return origin.__value__[hint.__args__]
    return hint.__args__[0] if is_form(origin, "Final", "ReadOnly") else hint


def _without_variables(arguments: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The arguments of a hint. A bare `List` has type variables for them on CPython 3.8, which may be anything."""
    return tuple(Any if isinstance(each, typing.TypeVar) else each for each in arguments)
