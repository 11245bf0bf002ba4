"""The model's class, found in the syntax tree of its script, with what the platform demands of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import Function, bound_elsewhere, classes, functions, parse

PREDICTING = ("preprocess", "predict", "postprocess")
OPENAI = {
    "chat_completions": "/v1/chat/completions",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
"""Methods with a route of their own."""
HOSTED = ("/production/sync", "/development/sync", "/environments/{environment}/sync", "/deployment/{deployment}/sync")
"""The beginning of the OpenAI methods' paths on the hosted platform."""
REQUEST_WORDS = ("Request", "yield", "Generator", "stream", "Stream")
"""Words in the names of a script that reads headers, or that answers by the header Accept."""
NO_WEBSOCKETS = "websockets are not served: Panglot speaks HTTP and gRPC"


@dataclass(frozen=True)
class ModelClass:
    """The class of a truss, as far as the syntax tree tells."""

    script: Path
    name: str
    line: int
    methods: dict[str, Function] = field(default_factory=dict)
    is_whole: bool = True
    """Whether `methods` has all its methods: it has no base class, and is defined in this script."""
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))

    def may_have(self, name: str) -> bool:
        return name in self.methods or not self.is_whole

    @property
    def takes_keywords(self) -> bool:
        """Whether its `__init__` takes all the platform's arguments, by `**kwargs`."""
        init = self.methods.get("__init__")
        return init is not None and init.args.kwarg is not None

    @property
    def reads_head(self) -> bool:
        """Whether the worker needs all headers of a request. A wrong yes costs time, a wrong no breaks the script."""
        names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        is_stream = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(self.tree))
        return is_stream or not self.is_whole or any(word in name for name in names for word in REQUEST_WORDS)


def openai_paths(method: str) -> list[str]:
    """The paths of an OpenAI method: first the one of the platform's server, then the ones of its hosted models."""
    return [OPENAI[method], *(start + OPENAI[method] for start in HOSTED)]


def find(script: Path, name: str) -> ModelClass | None:
    """The class of this name in a script; None where there is none. Raises StartError for a file that is no Python."""
    tree = parse(script)
    for node in classes(tree):
        if node.name == name:
            return ModelClass(script, name, node.lineno, _methods(node), not node.bases and not node.keywords, tree)
    line = bound_elsewhere(tree).get(name, 0)
    return ModelClass(script, name, line, is_whole=False, tree=tree) if line else None


def _methods(node: ast.ClassDef) -> dict[str, Function]:
    """The methods of a class, also by assignments such as `predict_async = predict`."""
    methods = functions(node.body)
    for item in node.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Name) and item.value.id in methods:
            names = [target.id for target in item.targets if isinstance(target, ast.Name)]
            methods |= dict.fromkeys(names, methods[item.value.id])
    return methods


def check(model: ModelClass) -> None:
    """Refuse a class that the platform's server, or Panglot, cannot serve. Raises StartError."""
    if "websocket" in model.methods:
        raise _error(model, NO_WEBSOCKETS, model.methods["websocket"].lineno, "give it def predict(self, model_input)")
    if not model.may_have("predict"):
        raise _error(model, f"{model.name} has no predict", model.line, "def predict(self, model_input)")
    for name in (*PREDICTING, *OPENAI):
        method = model.methods.get(name)
        if method is not None and not method.decorator_list:
            _check_arguments(model, name, method)
    healthy = model.methods.get("is_healthy")
    if healthy is not None and not healthy.decorator_list and len(_parameters(healthy)) > 1:
        raise _error(model, "is_healthy must have only one argument, self", healthy.lineno, "def is_healthy(self)")


def _check_arguments(model: ModelClass, name: str, method: Function) -> None:
    count = len(_parameters(method)) - 1
    shown = f"{name}({ast.unparse(method.args)})"
    if count > 2:
        problem = f"{shown} cannot have more than two arguments besides self"
        raise _error(model, problem, method.lineno, f"def {name}(self, model_input, request: Request)")


def _parameters(method: Function) -> list[ast.arg]:
    arguments = method.args
    more = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def _error(model: ModelClass, problem: str, line: int, fix: str) -> StartError:
    return StartError(problem, file=str(model.script), line=line, fix=fix)
