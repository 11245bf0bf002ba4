"""Hints of pydantic: the model's input, its output, and what `GET .../schema` says of them."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from panglot_worker.dialects.truss.methods import Method

Streams = (
    collections.abc.Generator,
    collections.abc.AsyncGenerator,
    collections.abc.Iterator,
    collections.abc.AsyncIterator,
)


class Schema(NamedTuple):
    """The types of a model's input and output, as far as hints tell them."""

    input: Any = None
    output: Any = None
    streams: Optional[bool] = None

    def shown(self) -> Dict[str, Any]:
        """What the platform's clients read."""
        return {
            "input_schema": schema_of(self.input),
            "output_schema": schema_of(self.output),
            "supports_streaming": self.streams,
        }


def is_model(annotation: Any) -> bool:
    """Whether an annotation is a model of pydantic."""
    kind = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    return isinstance(annotation, type) and kind is not None and issubclass(annotation, kind)


def schema_of(kind: Any) -> Any:
    if kind is None:
        return None
    return kind.model_json_schema() if hasattr(kind, "model_json_schema") else kind.schema()


def of_methods(methods: Dict[str, Method]) -> Optional[Schema]:
    """The schema by the hints of the first and of the last method of a prediction; None without such hints."""
    first = inspect.signature(methods.get("preprocess", methods["predict"]).function)
    last = inspect.signature(methods.get("postprocess", methods["predict"]).function)
    parameters = list(first.parameters.values())
    given = parameters[0].annotation if parameters and is_model(parameters[0].annotation) else None
    output = _output(last.return_annotation)
    if given is None and output is None:
        return None
    return Schema(given) if output is None else output._replace(input=given)


def _output(annotation: Any) -> Optional[Schema]:
    if is_model(annotation):
        return Schema(output=annotation, streams=False)
    if _is_of(annotation, Streams):
        return Schema(streams=True)
    if _is_of(annotation, (collections.abc.Awaitable,)):
        inner = _awaited(annotation)
        return Schema(output=inner, streams=False) if inner is not None else None
    if getattr(annotation, "__origin__", None) is Union and len(annotation.__args__) == 2:
        parts: List[Any] = list(annotation.__args__)
        models = [part if is_model(part) else _awaited(part) for part in parts]
        streams = [part for part in parts if _is_of(part, Streams)]
        chosen = [model for model in models if model is not None]
        return Schema(output=chosen[0], streams=True) if len(chosen) == len(streams) == 1 else None
    return None


def _is_of(annotation: Any, kinds: Any) -> bool:
    origin = getattr(annotation, "__origin__", None)
    return isinstance(origin, type) and issubclass(origin, kinds)


def _awaited(annotation: Any) -> Any:
    """The model of pydantic that `Awaitable[...]` holds."""
    if not _is_of(annotation, (collections.abc.Awaitable,)) or not getattr(annotation, "__args__", ()):
        return None
    inner = annotation.__args__[0]
    return inner if is_model(inner) else None


# Values


def validator(kind: Any) -> Callable[[Any], Any]:
    """The function that makes an object of a model from a value, in either version of pydantic."""
    return kind.model_validate if hasattr(kind, "model_validate") else kind.parse_obj  # type: ignore[no-any-return]


def is_validation_error(error: BaseException) -> bool:
    kind = getattr(sys.modules.get("pydantic"), "ValidationError", None)
    return kind is not None and isinstance(error, kind)


def explained(error: Any) -> str:
    """A validation error as the platform words it."""
    try:
        errors = error.errors(include_url=False, include_input=False)
    except TypeError:
        errors = error.errors()  # the older version of pydantic
    lines = ["Input Parsing Error:" if len(errors) == 1 else "Input Parsing Errors:"]
    for each in errors:
        message = each["msg"] or str({name: value for name, value in each.items() if name != "loc"})
        text = "`%s`: %s." % (_place(each["loc"]), message)
        lines += ["  " + line if line.strip() else line for line in text.split("\n")]
    return "\n".join(lines)


def _place(steps: Any) -> str:
    text = ""
    for step in steps:
        text += "[%d]" % step if isinstance(step, int) else ("." if text else "") + str(step)
    return text


def is_object(value: Any) -> bool:
    """Whether a value is an object of a model of pydantic."""
    return is_model(type(value))


def written(value: Any) -> str:
    """The JSON text of an object of a model, as either version of pydantic writes it."""
    if hasattr(value, "model_dump_json"):
        return str(value.model_dump_json())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return str(value.json())


def as_dict(value: Any) -> Any:
    return value.model_dump(mode="python") if hasattr(value, "model_dump") else value.dict()
