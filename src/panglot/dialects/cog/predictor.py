"""The predictor of a script, found in its syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import Function, bound_elsewhere, classes, functions, parse
from panglot_worker.files.package_files import content_if_any

BASES = ("BasePredictor", "BaseRunner")
USUAL = ("Runner", "Predictor")
METHODS = ("predict", "run")
FORM = "def predict(self, text: str) -> str"


@dataclass(frozen=True)
class PredictorCode:
    """A class or function of a script that predicts."""

    script: Path
    name: str
    line: int
    method: str = ""
    """The method; empty for a function, and where the tree does not tell it."""
    secrets: tuple[str, ...] | None = None
    """The inputs that are secrets; None where the tree does not tell the inputs."""


def by_base(script: Path) -> PredictorCode | None:
    """The predictor of a script without cog.yaml: the last class that derives from a base class of cog."""
    if b"cog" not in content_if_any(script):
        return None
    tree = parse(script)
    bases = set(_bases(tree))
    chosen = [node for node in classes(tree) if any(ast.unparse(base) in bases for base in node.bases)]
    return _of_class(script, chosen[-1]) if chosen else None


def by_name(script: Path, name: str) -> PredictorCode:
    """The class or function that cog.yaml names; without a name the usual one. Raises StartError."""
    tree = parse(script)
    defined = {node.name: node for node in classes(tree)}
    wanted = name or next((usual for usual in USUAL if usual in defined), USUAL[-1])
    if wanted in defined:
        return _of_class(script, defined[wanted])
    own = functions(tree.body)
    if wanted in own:
        return PredictorCode(script, wanted, own[wanted].lineno, secrets=_secrets(own[wanted]))
    line = bound_elsewhere(tree).get(wanted, 0)
    if not line:
        there = next((usual for usual in (*USUAL, *defined) if usual in defined), "")
        if there:
            message = f"there is no class or function {wanted} in it; there is {there}"
            raise StartError(message, file=str(script), fix=f"name {script.name}:{there} in cog.yaml")
        raise StartError(f"there is no class or function {wanted} in it", file=str(script), fix=f"class {wanted}")
    return PredictorCode(script, wanted, line)


def secrets_of(script: Path, name: str) -> tuple[str, ...] | None:
    """The inputs of a function that are secrets; None where the tree does not tell. Raises StartError."""
    own = functions(parse(script).body)
    return _secrets(own[name]) if name in own else None


def _bases(tree: ast.Module) -> list[str]:
    """The names that the base classes of cog have in a script."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.asname or alias.name for alias in node.names if alias.name == "cog"]
            names += [f"{module}.{base}" for module in modules for base in BASES]
        elif isinstance(node, ast.ImportFrom) and node.module == "cog":
            names += [alias.asname or alias.name for alias in node.names if alias.name in BASES]
            if any(alias.name == "*" for alias in node.names):
                names += BASES
    return names


def _of_class(script: Path, node: ast.ClassDef) -> PredictorCode:
    methods = functions(node.body)
    own = [name for name in METHODS if name in methods]
    if len(own) > 1:
        problem = f"{node.name} must define either run() or predict(), not both"
        raise StartError(problem, file=str(script), line=methods[own[1]].lineno, fix=FORM)
    if not own:
        if all(ast.unparse(base).rpartition(".")[2] in BASES for base in node.bases):
            raise StartError(f"{node.name} has no predict()", file=str(script), line=node.lineno, fix=FORM)
        return PredictorCode(script, node.name, node.lineno)
    _check(script, node.name, methods[own[0]])
    return PredictorCode(script, node.name, node.lineno, own[0], _secrets(methods[own[0]]))


def _secrets(function: Function) -> tuple[str, ...]:
    """The arguments with `Secret` in their type."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return tuple(each.arg for each in arguments if each.annotation and "Secret" in ast.unparse(each.annotation))


def _check(script: Path, name: str, method: Function) -> None:
    """Refuse a method with `*args` or `**kwargs`: inputs need names. Raises StartError."""
    for argument in (method.args.vararg, method.args.kwarg):
        if argument is not None:
            problem = f"{name}.{method.name} takes {argument.arg} by stars, which is no input"
            raise StartError(problem, file=str(script), line=method.lineno, fix="name each input with its type")
