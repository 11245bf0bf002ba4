"""The methods of a model, and how each is called: with the inputs, with the request, with both or with nothing."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from panglot_worker.errors import ScriptError

PREDICTING = ("preprocess", "predict", "postprocess")
OPENAI = {
    "chat_completions": b"/v1/chat/completions",
    "completions": b"/v1/completions",
    "embeddings": b"/v1/embeddings",
    "messages": b"/v1/messages",
    "responses": b"/v1/responses",
}
NOTHING, INPUTS, REQUEST, BOTH = "nothing", "inputs", "request", "inputs and request"


class Method(NamedTuple):
    """A method of the model."""

    name: str
    function: Callable[..., Any]
    takes: str
    is_async: bool
    streams: bool

    @property
    def takes_request(self) -> bool:
        return self.takes in (REQUEST, BOTH)

    def arguments(self, inputs: Any, request: Any) -> Tuple[Any, ...]:
        if self.takes == INPUTS:
            return (inputs,)
        if self.takes == NOTHING:
            return ()
        return (request,) if self.takes == REQUEST else (inputs, request)


def is_request_type(annotation: Any) -> bool:
    """Whether an annotation is starlette's Request, which is FastAPI's too. A text is not."""
    kind = getattr(sys.modules.get("starlette.requests"), "Request", None)
    return isinstance(annotation, type) and kind is not None and issubclass(annotation, kind)


def of_model(model: Any, script: str) -> Dict[str, Method]:
    """The methods that the platform calls, by name. Raises ScriptError where it would refuse the model."""
    wanted = (*PREDICTING, *OPENAI, "is_healthy")
    methods = {name: _method(model, name, script) for name in wanted if hasattr(model, name)}
    if hasattr(model, "websocket"):
        raise _error(model.websocket, script, "websockets are not served", "give the class def predict")
    if "predict" not in methods:
        problem = "Truss model must have a `predict` method."
        raise _error(type(model), script, problem, "def predict(self, model_input)")
    if "is_healthy" in methods and methods["is_healthy"].takes != NOTHING:
        problem = "`is_healthy` must have only one argument: `self`."
        raise _error(model.is_healthy, script, problem, "def is_healthy(self)")
    if "preprocess" in methods and methods["predict"].takes == REQUEST:
        problem = (
            "When using `preprocess`, the predict method cannot only have the request argument "
            "(because the result of `preprocess` would be discarded)."
        )
        raise _error(model.predict, script, problem, "def predict(self, model_input, request: Request)")
    if "postprocess" in methods and methods["postprocess"].takes == REQUEST:
        problem = (
            "The `postprocess` method cannot only have the request argument "
            "(because the result of `predict` would be discarded)."
        )
        raise _error(model.postprocess, script, problem, "def postprocess(self, output, request: Request)")
    return methods


def _method(model: Any, name: str, script: str) -> Method:
    function = getattr(model, name)
    waits = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    return Method(name, function, _taken(function, name, script), waits, streams)


def _taken(function: Any, name: str, script: str) -> str:
    """What a method takes, by its signature. Raises ScriptError."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters:
        return NOTHING
    if len(parameters) == 1:
        return REQUEST if is_request_type(parameters[0].annotation) else INPUTS
    fix = "def %s(self, model_input, request: Request)" % name
    if len(parameters) > 2:
        problem = "`%s` method cannot have more than two arguments. Got: %s" % (name, signature)
        raise _error(function, script, problem, fix)
    if is_request_type(parameters[0].annotation):
        problem = (
            "`%s` method with two arguments is not allowed to have request as first argument, "
            "request must be second. Got: %s" % (name, signature)
        )
        raise _error(function, script, problem, fix)
    if not is_request_type(parameters[1].annotation):
        problem = "`%s` method with two arguments must have request as second argument (type annotated). Got: %s" % (
            name,
            signature,
        )
        if isinstance(parameters[1].annotation, str):
            problem += "; annotations that `from __future__ import annotations` makes texts of are not recognised"
        raise _error(function, script, problem, fix)
    return BOTH


def _error(function: Any, script: str, problem: str, fix: str) -> ScriptError:
    code: Optional[Any] = getattr(inspect.unwrap(function), "__code__", None)
    file, line = getattr(code, "co_filename", script), getattr(code, "co_firstlineno", 0)
    return ScriptError(problem, file, line, fix)
