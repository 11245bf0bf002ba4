"""Facts about a script that are known without running it: its functions, and whether it looks at files."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from panglot.dialects.evals.layout import ScriptPlace, parsed
from panglot.errors import StartError
from panglot.packages.source import Function, functions

STARTS = ("create_net", "net_init")
INFER = "net_inference"
UNTOLD_METHODS = {"items", "values", "popitem"}
"""Methods that give the entries of a dict without naming them."""
UNTOLD_NAMES = {"eval", "exec", "__import__", "importlib", "getattr", "vars"}


class Interfaces(NamedTuple):
    """The names of the script's functions: `start` runs once at the load, `infer` runs for requests."""

    start: str
    infer: str
    line: int
    """The line that defines `start`; 0 where another file does."""


def interfaces(where: ScriptPlace, helpers: Iterable[Path]) -> Interfaces:
    """The script's functions, known by their decorators, else by their names. Raises StartError when one is missing."""
    decorated = _decorated([where.tree, *(parsed(file) for file in helpers)])
    defined = functions(where.tree.body)
    bound = {*defined, *_bound(where.tree)}

    def name_of(wanted: str) -> str:
        names = [name for name in decorated.get(wanted, ()) if name in bound or "*" in bound]
        return wanted if wanted in names or not names else names[0]

    start = next((name_of(name) for name in STARTS if name_of(name) in bound), name_of(STARTS[0]))
    infer = name_of(INFER)
    for name, given in ((start, "configs"), (infer, "model, reqs")):
        if name not in bound and "*" not in bound:
            raise StartError(f"there is no {name} in it", file=str(where.script), fix=f"define {name}({given})")
    return Interfaces(start, infer, defined[start].lineno if start in defined else 0)


def _decorated(trees: Iterable[ast.Module]) -> dict[str, list[str]]:
    """The functions of some modules by their role, in the platform's words. The decorators tell the role."""
    names: dict[str, list[str]] = {}
    for tree in trees:
        aliases = _aliases(tree)
        for function in functions(tree.body).values():
            for handler in _handlers(function, aliases):
                names.setdefault(handler, []).append(function.name)
    return names


def _aliases(tree: ast.Module) -> dict[str, str]:
    """The names that imports have in a module by `as`, with their real names."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.asname: alias.name for node in imports for alias in node.names if alias.asname}


def _handlers(function: Function, aliases: dict[str, str]) -> Iterator[str]:
    """The roles that the decorators of a function give it: `create_net` for `create_net_handler`."""
    for decorator in function.decorator_list:
        name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
        name = aliases.get(name, name)
        if name.endswith("_handler") and name.removesuffix("_handler") in (*STARTS, INFER):
            yield name.removesuffix("_handler")


def _bound(tree: ast.Module) -> set[str]:
    """Names that imports and assignments bind; `*` where a module of the package's own may bring in any name."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names |= set() if (node.module or "").startswith("evals.utils") else {"*"}
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def looks_at_files(where: ScriptPlace, helpers: Iterable[Path]) -> bool:
    """Whether the package's modules may read the `uri` of a request: they name it, or read all entries of a request.

    A wrong yes costs a file that the script does not open. A wrong no would break the script.
    """
    return any(_may_read_uri(node) for file in (where.script, *helpers) for node in ast.walk(parsed(file)))


def _may_read_uri(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and "uri" in node.value and not _is_prose(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in UNTOLD_METHODS
    if isinstance(node, ast.keyword):
        return node.arg is None
    return isinstance(node, ast.Name) and node.id in UNTOLD_NAMES


def _is_prose(text: str) -> bool:
    """Whether a text has blanks in it, like a docstring. Such a text is no key."""
    return any(character.isspace() for character in text)
