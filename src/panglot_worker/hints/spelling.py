"""Hints as they are written in Python: with typing or typing_extensions, as strings, in any CPython."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from typing import Any, Callable, Dict, List, Tuple

LIBRARIES = ("typing", "typing_extensions")


class Unclear(Exception):
    """A hint that cannot be evaluated, or that no request can hold. `fix` is for the script's author."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix


def is_form(thing: Any, *names: str) -> bool:
    """Whether a thing is one of the special forms of these names, such as Literal, of typing or typing_extensions."""
    return thing is not None and any(
        thing is getattr(sys.modules.get(library), name, None) for library in LIBRARIES for name in names
    )


def is_union(hint: Any) -> bool:
    # `X | Y` has the type UnionType from CPython 3.10 on; from 3.14 on every union is of the type Union.
    return getattr(hint, "__origin__", None) is typing.Union or type(hint).__name__ in ("UnionType", "Union")


def annotated(hint: Any) -> Tuple[Any, Tuple[Any, ...]]:
    """A hint without its Annotated, and the metadata of that."""
    metadata = getattr(hint, "__metadata__", None)
    return (hint, ()) if metadata is None else (hint.__origin__, tuple(metadata))


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function or class, with annotations as written. Raises ValueError where it has none."""
    if sys.version_info >= (3, 14):
        import importlib

        # Imported by name: older interpreters do not have it.
        forms = importlib.import_module("annotationlib").Format
        return inspect.signature(function, annotation_format=forms.FORWARDREF)
    return inspect.signature(function)


def evaluated(annotation: Any, names: Dict[str, Any], what: str) -> Any:
    """The hint that an annotation stands for, among these global names. Raises Unclear."""
    return _type_hints(types.SimpleNamespace(__annotations__={"it": annotation}), what, names)["it"]


def hints_of(owner: type, what: str) -> Dict[str, Any]:
    """The evaluated hints of a class and those it inherits from. Raises Unclear."""
    return _type_hints(owner, what, None)


def _type_hints(owner: Any, what: str, names: Any) -> Dict[str, Any]:
    try:
        hints = _once(owner, names)
        if sys.version_info < (3, 9):
            # The first pass leaves strings inside of strings.
            known = vars(sys.modules[owner.__module__]) if names is None else names
            hints = _once(types.SimpleNamespace(__annotations__=hints), known)
        return hints
    except Exception as error:
        raise Unclear("the hint of %s cannot be evaluated: %s" % (what, _said(error)), _fix(error)) from error


def _once(owner: Any, names: Any) -> Dict[str, Any]:
    if sys.version_info >= (3, 9):
        return typing.get_type_hints(owner, names, include_extras=True)
    extensions = sys.modules.get("typing_extensions")
    if extensions is not None:
        return extensions.get_type_hints(owner, names, include_extras=True)
    return typing.get_type_hints(owner, names)


def _said(error: BaseException) -> str:
    return "%s: %s" % (type(error).__name__, str(error)[:300])


def _fix(error: BaseException) -> str:
    if isinstance(error, TypeError) and sys.version_info < (3, 10):
        version = "%d.%d" % sys.version_info[:2]
        return "on CPython %s write List[str], Dict[str, int], Optional[int], Union[int, str] of typing" % version
    if isinstance(error, NameError):
        return "define or import the name where the script is run (not only under TYPE_CHECKING), or leave the hint out"
    return "correct the hint, or leave it out"


def global_names(function: Callable[..., Any]) -> Dict[str, Any]:
    """The names that a function's annotations may use."""
    inner: Any = inspect.unwrap(function)
    for candidate in (inner, getattr(inner, "func", None), getattr(type(inner), "__call__", None)):  # noqa: B004
        names = getattr(candidate, "__globals__", None)
        if isinstance(names, dict):
            return names
    return {}


def file_and_line(function: Callable[..., Any]) -> Tuple[str, int]:
    """File and line of a function."""
    code: Any = getattr(inspect.unwrap(function), "__code__", None)
    return getattr(code, "co_filename", ""), getattr(code, "co_firstlineno", 0)


def is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def typed_dict_fields(hint: Any) -> List[Tuple[str, Any, bool]]:
    """Name, hint and whether it must be there, of every field of a TypedDict. Raises Unclear."""
    # CPython 3.8 has no such attribute: there the whole TypedDict is total or not.
    required = getattr(hint, "__required_keys__", None)
    fields = []
    for name, inner in hints_of(hint, hint.__name__).items():
        is_required = hint.__total__ if required is None else name in required
        origin = getattr(inner, "__origin__", None)
        while is_form(origin, "Required", "NotRequired", "ReadOnly"):
            if not is_form(origin, "ReadOnly"):
                is_required = is_form(origin, "Required")
            inner = inner.__args__[0]
            origin = getattr(inner, "__origin__", None)
        fields.append((name, inner, bool(is_required)))
    return fields


def written(hint: Any) -> str:
    """A hint as its author may have written it."""
    text = hint.__qualname__ if isinstance(hint, type) and not hasattr(hint, "__args__") else repr(hint)
    return text.replace("typing_extensions.", "").replace("typing.", "")[:120]
