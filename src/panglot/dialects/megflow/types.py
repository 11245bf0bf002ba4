"""The node types a plugin folder registers, read from its syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import imported, parse
from panglot_worker.graphs.checking import Types
from panglot_worker.graphs.ports import Ports, declared

FUNCTIONS = {
    "map_def": (["inp"], ["out"]),
    "reduce_def": (["inp:[]"], ["out"]),
    "sink_def": (["inp"], []),
    "source_def": ([], ["out"]),
    "batch_def": (["inp"], ["out"]),
}
"""Decorators of `megflow.func_op` with the ports they give."""


def types_of(plugin: Path, module_path: Path) -> Types:
    """The types that the plugins register. They are not complete where only running the code would tell them all."""
    nodes: dict[str, Ports] = {}
    resources: set[str] = set()
    complete = True
    for file in files(plugin):
        tree = parse(file)
        complete = complete and not _leads_elsewhere(tree, plugin, module_path)
        decorators = _decorators(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                complete = _read(node, file, nodes, resources) and complete
            elif isinstance(node, ast.Call) and _name(node.func) in ("register", "res_register"):
                # A call that decorates nothing we have seen: `register(...)(cls)`.
                complete = complete and node in decorators
    return Types(nodes, resources, complete)


def files(plugin: Path) -> Iterator[Path]:
    """The modules of the folder, and all of the packages in it."""
    for entry in sorted(plugin.iterdir()):
        if entry.is_file() and entry.suffix == ".py":
            yield entry
        elif entry.is_dir() and (entry / "__init__.py").is_file():
            yield from sorted(entry.rglob("*.py"))


def _leads_elsewhere(tree: ast.Module, plugin: Path, module_path: Path) -> bool:
    """Whether it imports a module from beside the plugin folder, which may register further types."""
    for name in imported(tree):
        first = module_path / name.partition(".")[0]
        if plugin.is_relative_to(first):
            continue
        if first.is_dir() or first.with_suffix(".py").is_file():
            return True
    return False


def _read(node: ast.ClassDef | ast.FunctionDef, file: Path, nodes: dict[str, Ports], resources: set[str]) -> bool:
    """Note what the decorators register. False where their arguments are not plain values."""
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        word = _name(decorator.func)
        given = {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg}
        given |= dict(zip(("name", "inputs", "outputs"), decorator.args, strict=False))
        try:
            lists = {key: ast.literal_eval(value) for key, value in given.items()}
            if word == "register":
                nodes[lists.get("name") or node.name] = _ports(lists, file, decorator.lineno)
            elif word == "res_register":
                resources.add(lists.get("name") or node.name)
            elif word in FUNCTIONS:
                nodes[lists.get("name") or function_type(node.name)] = declared(*FUNCTIONS[word])
        except (ValueError, TypeError, MemoryError, RecursionError):
            return False
    return True


def _ports(lists: dict[str, list[str]], file: Path, line: int) -> Ports:
    try:
        return declared(lists.get("inputs") or [], lists.get("outputs") or [])
    except ValueError as error:
        raise StartError(str(error), file=str(file), line=line) from None


def function_type(name: str) -> str:
    """The name of the type that `megflow.func_op` makes of a function's name."""
    return re.sub(r"_([A-Za-z])", r"\1", name).title()


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _decorators(tree: ast.Module) -> set[ast.expr]:
    """All decorators of classes and functions."""
    decorated = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return {decorator for node in decorated for decorator in node.decorator_list}
