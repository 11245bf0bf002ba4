"""The arguments of a function of the script, and how it is called with them: one by one, or a batch at a time."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from panglot_worker.errors import ScriptError
from panglot_worker.hints.arguments import Arguments
from panglot_worker.hints.building import LISTS, Builder
from panglot_worker.hints.kinds.objects import Fields, NamedKind
from panglot_worker.hints.kinds.scalars import ANYTHING
from panglot_worker.hints.spelling import Unclear, annotated, evaluated, file_and_line, global_names, signature, written

Function = Callable[..., Any]


class RouteShape(NamedTuple):
    """Where the arguments of a function with a route of its own come from, besides the query."""

    segments: Tuple[str, ...] = ()
    """The free segments of the path."""
    has_body: bool = True


class Typed(NamedTuple):
    """A function that takes its arguments by their hints."""

    arguments: Arguments
    calling: Callable[[Function], Callable[[Any], Any]]
    """Wraps a function of the same signature, so that it takes the arguments of a request, or a list of them."""
    calls_script: bool
    """Whether taking the arguments from a request may call code of the script."""


def typed(function: Function, name: str, batched: bool = False, route: Optional[RouteShape] = None) -> Optional[Typed]:
    """How a function takes arguments; None where it takes the whole body as it is.

    A function without hints takes the whole body, unless its route gives it more than a body, or it has no parameters.
    Raises ScriptError for hints that make no sense, and for a segment of the path without a parameter of its name.
    """
    try:
        parameters = list(signature(function).parameters.values())
    except (ValueError, TypeError):
        return None
    by_name = route is not None and (bool(route.segments) or not route.has_body or not parameters)
    try:
        fields = (_batch_fields if batched else _fields)(function, parameters, by_name)
        if route is not None and fields is not None:
            _check_segments(route, fields, parameters)
    except RecursionError:
        raise _error(function, name, Unclear("its hints contain themselves without end", "write a dataclass")) from None
    except Unclear as unclear:
        raise _error(function, name, unclear) from None
    if fields is None:
        return None
    named, builder, others = fields
    segments = route.segments if route is not None else ()
    in_path = [field for field in named if field.name in segments]
    rest = [field for field in named if field.name not in segments]
    arguments = Arguments(Fields(rest, others), builder.definitions, builder.patience, in_path, has_body(route))
    return Typed(arguments, _by_columns(named) if batched else _by_name(parameters), builder.calls_script)


def has_body(route: Optional[RouteShape]) -> bool:
    return route is None or route.has_body


def _check_segments(route: RouteShape, fields: _Found, parameters: List[inspect.Parameter]) -> None:
    """Refuse a free segment that no parameter takes. Raises Unclear."""
    names = [field.name for field in fields.named]
    for segment in route.segments:
        if segment not in names and fields.others is None:
            written_names = ", ".join([*(parameter.name for parameter in parameters), segment])
            raise Unclear("its path has {%s}, and it has no parameter of that name" % segment,
                          "write def ...(%s)" % written_names)  # fmt: skip


class _Found(NamedTuple):
    named: List[NamedKind]
    builder: Builder
    others: Any


def _fields(function: Function, parameters: List[inspect.Parameter], by_name: bool) -> Optional[_Found]:
    """The kind of each parameter; None where the function takes the whole body."""
    builder = Builder()
    named = builder.parameters(function)
    if not by_name and _takes_whole_body(named, parameters):
        return None
    rest = [parameter for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD]
    others = None
    if rest:
        hint = evaluated(rest[0].annotation, global_names(function), "**" + rest[0].name)
        others = builder.kind(hint, "**" + rest[0].name)
    return _Found(named, builder, others)


def _takes_whole_body(named: List[NamedKind], parameters: List[inspect.Parameter]) -> bool:
    """Whether no parameter has a hint; or all hints allow anything, and at most one parameter must be given."""
    if any(field.kind is not ANYTHING for field in named):
        return False
    hinted = any(parameter.annotation is not parameter.empty for parameter in parameters)
    return not hinted or sum(field.required for field in named) <= 1


def _by_name(parameters: List[inspect.Parameter]) -> Callable[[Function], Callable[[Any], Any]]:
    """How a function is called with a dict of arguments."""
    first = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    if not first:
        return lambda function: lambda values: function(**values)

    def call(function: Function, values: Dict[str, Any]) -> Any:
        rest = dict(values)
        return function(*[rest.pop(parameter.name, parameter.default) for parameter in first], **rest)

    return lambda function: lambda values: call(function, values)


# Batches


def _batch_fields(function: Function, parameters: List[inspect.Parameter], by_name: bool) -> Optional[_Found]:
    """The kind of one item for each parameter of a batch call: their hints are lists of it."""
    builder = Builder()
    names = global_names(function)
    named = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = _item_hint(evaluated(parameter.annotation, names, parameter.name), parameter.name)
        default = _item_default(parameter)
        named.append(builder.named(parameter.name, hint, parameter.name, parameter.replace(default=default)))
    return None if not by_name and _takes_whole_body(named, parameters) else _Found(named, builder, None)


def _item_hint(hint: Any, name: str) -> Any:
    """The hint of one item, where the parameter is a list of all items. Raises Unclear."""
    bare = annotated(hint)[0]
    if bare is Any or bare is object or bare is inspect.Parameter.empty:
        return Any
    if getattr(bare, "__origin__", bare) not in LISTS:
        problem = "%s is %s, but a batch gives a list with a value of each request" % (name, written(hint))
        raise Unclear(problem, "write %s: list[%s]" % (name, written(hint)))
    arguments = [each for each in getattr(bare, "__args__", ()) if not hasattr(each, "__constraints__")]
    return arguments[0] if arguments else Any


def _item_default(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if default is parameter.empty:
        return default
    if isinstance(default, (list, tuple)) and len(default) == 1:
        return default[0]
    problem = "the default of %s is not what one request has for it" % parameter.name
    raise Unclear(problem, "write a tuple of one value, such as %s=(0.5,)" % parameter.name)


def _by_columns(named: List[NamedKind]) -> Callable[[Function], Callable[[Any], Any]]:
    """How a function is called for several requests: each parameter gets a list with the value of each request."""
    names = [(field.name, field.default) for field in named]

    def columns(items: List[Dict[str, Any]]) -> Dict[str, List[Any]]:
        return {name: [item.get(name, default) for item in items] for name, default in names}

    return lambda function: lambda items: function(**columns(items))


def _error(function: Function, name: str, unclear: Unclear) -> ScriptError:
    file, line = file_and_line(function)
    return ScriptError("%s: %s" % (name, unclear.problem), file, line, unclear.fix)
