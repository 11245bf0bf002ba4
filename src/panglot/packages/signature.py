"""The entry point of a script, read without running it: docstring, inputs with their types, and the answer's type."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass

from panglot.packages.package import Package
from panglot.packages.source import Function, functions, parse

LONGEST = 200
"""The most letters of a type or a default that are shown."""


@dataclass(frozen=True)
class InputOfScript:
    """A parameter of the function that gets the input. `type` and `default` are as written, or empty."""

    name: str
    type: str = ""
    default: str = ""

    def __str__(self) -> str:
        shown = f"{self.name}: {self.type}" if self.type else self.name
        return f"{shown} = {self.default}" if self.default else shown


@dataclass(frozen=True)
class Signature:
    docstring: str = ""
    """The first paragraph of the docstring of the function, or else of its class or the script."""
    inputs: tuple[InputOfScript, ...] = ()
    returns: str = ""


def signature(package: Package) -> Signature:
    """The signature of a package's entry point, as far as its script shows one. Raises StartError."""
    if package.script.suffix != ".py":
        return Signature()
    tree = parse(package.script)
    owner, function = _found(tree, package.entry)
    taking = _found(tree, package.takes)[1] if package.takes else function
    giving = _found(tree, package.gives)[1] if package.gives else function
    written = (ast.get_docstring(node) for node in (function, owner, tree) if node is not None)
    return Signature(
        inspect.cleandoc(next(filter(None, written), "")).partition("\n\n")[0],
        tuple(_inputs(taking, is_method=owner is not None)) if taking is not None else (),
        _shown(giving.returns) if giving is not None else "",
    )


def _found(tree: ast.Module, name: str) -> tuple[ast.ClassDef | None, Function | None]:
    """The class and the function that a name such as `predict`, `Model.predict` or `Model` means."""
    first, _, method = name.partition(".")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == first:
            return node, functions(node.body).get(method)
    return None, functions(tree.body).get(name)


def _inputs(function: Function, is_method: bool) -> Iterator[InputOfScript]:
    given = function.args
    named = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(named) - len(given.defaults)) + list(given.defaults)
    pairs = [*zip(named, defaults, strict=True)]
    pairs = pairs[1:] if is_method and not _is_static(function) else pairs
    for argument, default in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
        yield InputOfScript(argument.arg, _shown(argument.annotation), _shown(default))
    for stars, rest in (("*", given.vararg), ("**", given.kwarg)):
        if rest is not None:
            yield InputOfScript(stars + rest.arg, _shown(rest.annotation))


def _is_static(function: Function) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "staticmethod" for node in function.decorator_list)


def _shown(node: ast.expr | None) -> str:
    """An expression as text, cut where it is long; empty without one."""
    if node is None:
        return ""
    text = ast.unparse(node)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
