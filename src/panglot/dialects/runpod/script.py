"""The call of `runpod.serverless.start` in a script, and the handler that it passes, found in the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import Function, parse
from panglot_worker.files.package_files import content_if_any

MODULE = "runpod"
FORM = 'runpod.serverless.start({"handler": handler})'


@dataclass(frozen=True)
class WorkerScript:
    """A script that starts a worker, as far as its syntax tree tells."""

    path: Path
    line: int
    """The line of the call."""
    handler: str = ""
    """The name of the handler; empty where the tree does not tell it."""
    tree: ast.Module | None = None


def find(path: Path) -> WorkerScript | None:
    """The script at a path; None where it starts no worker. Raises StartError for one that cannot work."""
    if MODULE.encode() not in content_if_any(path):
        return None
    tree = parse(path)
    names = set(_names_of_start(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _dotted(node.func) in names]
    if not calls:
        return None
    # The last call counts: an earlier one is often in a function for tests.
    call = max(calls, key=lambda node: node.lineno)
    handler = _handler(call, tree, path)
    _check(handler, tree, path)
    return WorkerScript(path, call.lineno, handler, tree)


def check_not_forgotten(path: Path) -> None:
    """Raise StartError for a script that defines a handler for this platform, and never passes it to `start`."""
    if MODULE.encode() not in content_if_any(path):
        return
    tree = parse(path)
    handlers = [node for node in tree.body if isinstance(node, Function) and node.name == "handler"]
    if handlers and any(_names_of_start(tree)):
        message = "it imports runpod, and never calls runpod.serverless.start"
        raise StartError(message, file=str(path), line=handlers[0].lineno, fix=FORM)


def _names_of_start(tree: ast.Module) -> Iterator[str]:
    """The names that the platform's function has in a script, by its imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == MODULE or (alias.name.startswith(f"{MODULE}.") and alias.asname is None):
                    yield f"{alias.asname or MODULE}.serverless.start"
                elif alias.name == f"{MODULE}.serverless":
                    yield f"{alias.asname}.start"
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                name = alias.asname or alias.name
                if node.module == MODULE and alias.name == "serverless":
                    yield f"{name}.start"
                elif node.module == f"{MODULE}.serverless" and alias.name == "start":
                    yield name


def _dotted(node: ast.expr) -> str:
    """An expression of names and dots as text, such as `runpod.serverless.start`; empty for another expression."""
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else ""


def _handler(call: ast.Call, tree: ast.Module, path: Path) -> str:
    """The name of the handler in the configuration. Raises StartError for a configuration without one."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given:
        raise StartError("start() is given no configuration", file=str(path), line=call.lineno, fix=FORM)
    config = _assigned(given[0].id, tree) if isinstance(given[0], ast.Name) else given[0]
    if not isinstance(config, ast.Dict) or None in config.keys:
        return ""
    for key, value in zip(config.keys, config.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "handler":
            return value.id if isinstance(value, ast.Name) else ""
    # The handler may be added later, by config["handler"] = handler, or under a key that only running the script tells.
    if isinstance(given[0], ast.Name) or not all(isinstance(key, ast.Constant) for key in config.keys):
        return ""
    raise StartError("the configuration of start() has no handler", file=str(path), line=call.lineno, fix=FORM)


def _assigned(name: str, tree: ast.Module) -> ast.expr | None:
    """The value of a name that is assigned once; else None."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return values[0] if len(values) == 1 else None


def _check(name: str, tree: ast.Module, path: Path) -> None:
    """Refuse a handler that cannot be called with a job. Raises StartError."""
    defined = [node for node in ast.walk(tree) if isinstance(node, Function) and node.name == name]
    if len(defined) != 1 or defined[0].decorator_list or defined[0] not in tree.body:
        return
    function = defined[0]
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    required = len(named) - len(arguments.defaults)
    keyword_only = sum(1 for default in arguments.kw_defaults if default is None)
    if required <= 1 and not keyword_only and (named or arguments.vararg is not None):
        return
    raise StartError(
        f"{name}({ast.unparse(arguments)}) must take one argument, the job",
        file=str(path),
        line=function.lineno,
        fix=f"def {name}(job)",
    )
