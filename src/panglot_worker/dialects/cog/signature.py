"""The inputs and the output of a predictor, by the signature of its method."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, get_type_hints

from panglot_worker.dialects.cog import kinds, values
from panglot_worker.dialects.cog.kinds import Kind
from panglot_worker.dialects.cog.values import BadValue
from panglot_worker.errors import ClientError, ScriptError

REQUIRED = ...
"""The default of an input that must be given, as `Input` has it."""


class Parameter(NamedTuple):
    """One input."""

    name: str
    kind: Kind
    field: Any
    """The `FieldInfo` of `Input(...)`; the dialect makes one for a plain default."""

    @property
    def is_required(self) -> bool:
        return self.field.default is REQUIRED and not self.kind.optional

    @property
    def default(self) -> Any:
        return None if self.field.default is REQUIRED else self.field.default


class BadInput(ClientError):
    """Inputs that are not what the script wants; `problems` is the detail of the platform's answer."""

    def __init__(self, problems: List[Dict[str, Any]]) -> None:
        super().__init__(str(problems[0]["msg"]), status=422)
        self.problems = problems


class Signature:
    """What a method takes and gives."""

    def __init__(self, parameters: Tuple[Parameter, ...], output: Any, takes_any: bool = False) -> None:
        self.parameters = parameters
        self.output = output
        """The annotation of its result; Any where there is none."""
        self.takes_any = takes_any

    def read(self, given: Dict[str, Any]) -> Dict[str, Any]:
        """The plain values of all inputs, defaults filled in; files are still addresses. Raises BadInput.

        Inputs that the method does not have are dropped.
        """
        values: Dict[str, Any] = {}
        problems: List[BadValue] = []
        for parameter in self.parameters:
            values[parameter.name] = _read(parameter, given, problems)
        if problems:
            raise BadInput([problem.described() for problem in problems])
        return values


def _read(parameter: Parameter, given: Dict[str, Any], problems: List[BadValue]) -> Any:
    name = parameter.name
    if name not in given:
        if not parameter.is_required:
            return values.default_of(parameter.default, parameter.kind)
        missing = BadValue("field required", "value_error.missing")
        missing.place = (name,)
        problems.append(missing)
        return None
    if given[name] is None and parameter.default is None and not parameter.is_required:
        # A script of the old form has `seed: int = Input(default=None)`.
        return None
    return values.read(given[name], parameter.kind, parameter.field, (name,), problems)


def signature_of(method: Callable[..., Any], names: Dict[Any, str], make_field: Callable[[Any], Any]) -> Signature:
    """The signature of a bound method, through decorators. Raises ScriptError for one that cannot be served."""
    function = inspect.unwrap(method)
    try:
        hints = get_type_hints(function)
    except Exception as error:
        raise ScriptError("the hints of %s cannot be read: %s" % (function.__name__, error)) from None
    parameters = []
    own = list(inspect.signature(function).parameters.values())
    # Behind a decorator the function still has its `self`, which the method binds.
    own = own[1:] if own and own[0].name == "self" else own
    for parameter in own:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            fix = "name each input with its type"
            raise ScriptError("%s takes *%s, which is no input" % (function.__name__, parameter.name), fix=fix)
        parameters.append(_parameter(parameter, hints, names, make_field, function.__name__))
    return Signature(tuple(parameters), hints.get("return", Any))


def _parameter(
    parameter: inspect.Parameter, hints: Dict[str, Any], names: Dict[Any, str], make_field: Callable[[Any], Any],
    where: str,
) -> Parameter:  # fmt: skip
    annotation = hints.get(parameter.name, Any)
    kind: Optional[Kind] = kinds.kind_of(annotation, names)
    if kind is None:
        fix = "use str, int, float, bool, cog.Path, cog.File, cog.Secret, dict, or lists and unions of them"
        message = "the input %s of %s has the type %r, which is not served" % (parameter.name, where, annotation)
        raise ScriptError(message, fix=fix)
    given = parameter.default
    if given is parameter.empty:
        field = make_field(REQUIRED)
    else:
        field = given if type(given).__name__ == "FieldInfo" else make_field(given)
    if not field.choices and kind.choices:
        field.choices = list(kind.choices)
    return Parameter(parameter.name, kind, field)
