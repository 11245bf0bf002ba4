"""The processor class of a script, found in its syntax tree, with its properties and fixed paths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.package import FixedPath
from panglot.packages.source import Function, classes, functions, imported, parse, texts_beginning
from panglot_worker.files.package_files import content_if_any

MODULE, BASE = "allspark", "BaseProcessor"
FORM = "def process(self, data), which returns (bytes, 200)"
MODEL = "/eas/workspace/model"
"""Where the platform puts the model."""
FIXED = re.compile(r"(/eas/workspace/model|\.\./\.\./model)(?=/|$)")
MOST_SCRIPTS = 200


@dataclass(frozen=True)
class Processor:
    """A script, the name of its processor class, and the properties that it sets by plain texts."""

    script: Path
    name: str
    reason: str
    properties: dict[str, str] = field(default_factory=dict)


def mentions(script: Path) -> bool:
    return MODULE.encode() in content_if_any(script)


def find(script: Path) -> Processor | None:
    """The processor of a script; None where there is none. Raises StartError for one that cannot work."""
    if not mentions(script):
        return None
    tree = parse(script)
    names = set(_names_of_base(tree))
    processors: list[ast.ClassDef] = []
    for node in classes(tree):
        if any(ast.unparse(base) in names for base in node.bases):
            processors.append(node)
            # A class may derive from a processor above it.
            names.add(node.name)
    if not processors:
        return _elsewhere(script, tree)
    node = processors[-1]
    methods = [functions(entry.body) for entry in processors]
    if not any("process" in defined for defined in methods) and not _inherits_elsewhere(processors):
        raise StartError(f"{node.name} has no process", file=str(script), line=node.lineno, fix=FORM)
    for defined in methods:
        _check(defined.get("process"), node.name, script)
    reason = f"{script.name}:{node.lineno} defines class {node.name}({MODULE}.{BASE})"
    return Processor(script, node.name, reason, dict(_properties(tree)))


def _names_of_base(tree: ast.Module) -> Iterator[str]:
    """The names that the platform's base class has in a script."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"{alias.asname or alias.name}.{BASE}" for alias in node.names if alias.name == MODULE)
        elif isinstance(node, ast.ImportFrom) and node.module == MODULE:
            yield from (alias.asname or alias.name for alias in node.names if alias.name == BASE)
            if any(alias.name == "*" for alias in node.names):
                yield BASE


def _elsewhere(script: Path, tree: ast.Module) -> Processor | None:
    """A script that starts a processor of a module beside it: `from mine import Mine; Mine().run()`."""
    runs = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
        for node in ast.walk(tree)
    )
    line = imported(tree).get(MODULE, 0)
    if not runs or not line:
        return None
    return Processor(script, "the processor", f"{script.name}:{line} imports {MODULE}", dict(_properties(tree)))


def _inherits_elsewhere(processors: list[ast.ClassDef]) -> bool:
    """Whether a class has a further base, which may bring the missing method."""
    return any(len(node.bases) > 1 for node in processors)


def _check(method: Function | None, name: str, script: Path) -> None:
    if method is None or method.decorator_list:
        return
    arguments = method.args
    named = [*arguments.posonlyargs, *arguments.args]
    if len(named) - len(arguments.defaults) <= 2 and (len(named) >= 2 or arguments.vararg is not None):
        return
    raise StartError(
        f"{name}.process({ast.unparse(arguments)}) must take one argument besides self",
        file=str(script),
        line=method.lineno,
        fix=FORM,
    )


def _properties(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The properties that a script puts into `allspark.default_properties()` by plain texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "put":
            texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if len(texts) == 2 and str(texts[0]).startswith("rpc."):
                yield str(texts[0]), str(texts[1])


# Paths of the platform


def fixed_paths(folder: Path, model: Path) -> tuple[FixedPath, ...]:
    """Every string in the package's scripts that begins with the model's path, where that path does not exist."""
    if not model.is_relative_to(folder):
        return ()
    inside = str(model.relative_to(folder)).removeprefix(".")
    paths = []
    for script in sorted(folder.glob("*.py"))[:MOST_SCRIPTS]:
        if any(root in content_if_any(script) for root in (MODEL.encode(), b"../../model")):
            paths += list(_fixed_in(script, folder, inside))
    return tuple(paths)


def _fixed_in(script: Path, folder: Path, inside: str) -> Iterator[FixedPath]:
    for match, line in texts_beginning(script, FIXED):
        root = (folder / match[1]).resolve()
        if root.is_symlink() or not root.exists():
            yield FixedPath(match.string, script.name, line, str(root), inside)
