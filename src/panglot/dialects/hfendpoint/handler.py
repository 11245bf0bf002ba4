"""The handler class of a script, found in its syntax tree, with what the platform demands of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import Function, bound_elsewhere, classes, functions, parse

CLASS, LEGACY_CLASS = "EndpointHandler", "PreTrainedPipeline"
FORMS = {"__init__": 'def __init__(self, path="")', "__call__": "def __call__(self, data)"}
"""The methods that the platform calls, each with one argument, and how to write them."""


@dataclass(frozen=True)
class Handler:
    """A script and the name of its handler class."""

    script: Path
    name: str
    reason: str

    @property
    def legacy(self) -> bool:
        return self.name == LEGACY_CLASS


def find(script: Path) -> Handler | None:
    """The handler of a script; None where there is none. Raises StartError for one that cannot be called."""
    tree = parse(script)
    wanted = (LEGACY_CLASS, CLASS) if script.name == "pipeline.py" else (CLASS, LEGACY_CLASS)
    for name in wanted:
        node = _class(tree, name)
        if node is not None:
            _check(node, script)
            return Handler(script, name, f"{script.name}:{node.lineno} defines class {name}")
        line = bound_elsewhere(tree).get(name, 0)
        if line:
            _check_beside(tree, script, name)
            return Handler(script, name, f"{script.name}:{line} brings in {name}")
    return None


def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    return next((node for node in classes(tree) if node.name == name), None)


def _check_beside(tree: ast.Module, script: Path, name: str) -> None:
    """Check the class where a module beside the script defines it."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.level <= 1:
            original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), None)
            file = script.parent / (node.module.replace(".", "/") + ".py")
            if original is not None and file.is_file():
                definition = _class(parse(file), original)
                if definition is not None:
                    _check(definition, file)


def _check(node: ast.ClassDef, script: Path) -> None:
    """Refuse a class that cannot be constructed with a folder, or called with a request."""
    methods = functions(node.body)
    for name, form in FORMS.items():
        method = methods.get(name)
        if method is None and not node.bases and not _assigned(node, name):
            raise StartError(f"{node.name} has no {name}", file=str(script), line=node.lineno, fix=form)
        if method is not None and not _takes_one(method):
            raise StartError(
                f"{node.name}.{name}({ast.unparse(method.args)}) must take one argument besides self",
                file=str(script),
                line=method.lineno,
                fix=form,
            )


def _assigned(node: ast.ClassDef, name: str) -> bool:
    """Whether the class has the method by an assignment, as `__call__ = predict`."""
    targets = [target for item in node.body if isinstance(item, ast.Assign) for target in item.targets]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _takes_one(method: Function) -> bool:
    arguments = method.args
    if method.decorator_list:
        return True
    named = [*arguments.posonlyargs, *arguments.args]
    least = len(named) - len(arguments.defaults)
    needs_keyword = any(default is None for default in arguments.kw_defaults)
    return least <= 2 and (len(named) >= 2 or arguments.vararg is not None) and not needs_keyword
