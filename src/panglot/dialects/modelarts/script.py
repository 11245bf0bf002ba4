"""customize_service.py, read without running it: its service class, and the platform's paths that are written in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from panglot.dialects.modelarts.engines import BASES, MODULES, files
from panglot.errors import StartError
from panglot.packages.package import FixedPath
from panglot.packages.source import classes, imported, parse, texts_beginning
from panglot_worker.files.package_files import content_if_any

LARGEST = 1024 * 1024
"""Bytes of the largest script that is searched. A larger file is data, not code."""
FIXED = re.compile(r"(/home/(?:mind|ma-user/infer))(/model)?(?=/|$)")


@dataclass(frozen=True)
class Service:
    """The service class of a script, and its base class of the platform; both empty where the text does not tell."""

    name: str = ""
    base: str = ""
    line: int = 0


def is_ours(tree: ast.Module) -> bool:
    """Whether a script imports a base class of the platform."""
    return any(name in MODULES or name.startswith("mms.model_service") for name in imported(tree))


def service(script: Path, base_of_engine: str) -> Service:
    """The only leaf class over a base of the platform. Raises StartError when there plainly are two, or none."""
    tree = parse(script)
    names = _platform_names(tree)
    own = {node.name: node for node in classes(tree)}
    bases = {name: _base(node, own, names) for name, node in own.items()}
    parents = {parent for node in own.values() for parent in map(_dotted, node.bases)}
    leaves = [node for name, node in own.items() if bases[name] and name not in parents]
    if len(leaves) > 1:
        what = " and ".join(f"{node.name} (line {node.lineno})" for node in leaves)
        fix = "the platform takes exactly one class: let the others not derive from a base class, or from each other"
        raise StartError(f"{what} could all be the service", file=str(script), line=leaves[1].lineno, fix=fix)
    if leaves:
        return Service(leaves[0].name, bases[leaves[0].name], leaves[0].lineno)
    if own and not _may_come_from_elsewhere(tree, own, script.parent):
        node = next(iter(own.values()))
        raise StartError(
            "no class in it derives from a base class of the platform",
            file=str(script),
            line=node.lineno,
            fix=f"class {node.name}({base_of_engine})",
        )
    return Service()


def _platform_names(tree: ast.Module) -> dict[str, str]:
    """Names, dotted ones included, by which this script knows the platform's base classes."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_platform(node.module or ""):
            for alias in node.names:
                if alias.name in BASES:
                    names[alias.asname or alias.name] = alias.name
                elif alias.name == "*":
                    names.update({base: base for base in BASES})
                else:
                    names.update({f"{alias.asname or alias.name}.{base}": base for base in BASES})
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_platform(alias.name):
                    names.update({f"{alias.asname or alias.name}.{base}": base for base in BASES})
    return names


def _is_platform(module: str) -> bool:
    return module == "model_service" or module.startswith(("model_service.", "mms.model_service"))


def _base(node: ast.ClassDef, own: dict[str, ast.ClassDef], names: dict[str, str], depth: int = 20) -> str:
    """The platform's class that a class derives from, directly or through classes of the same file; else empty."""
    for dotted in map(_dotted, node.bases):
        if dotted in names:
            return names[dotted]
        if dotted in own and own[dotted] is not node and depth:
            inherited = _base(own[dotted], own, names, depth - 1)
            if inherited:
                return inherited
    return ""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return "?"


def _may_come_from_elsewhere(tree: ast.Module, own: dict[str, ast.ClassDef], folder: Path) -> bool:
    """Whether a class may get its base from a module beside the script, or from a base that only running it tells."""
    beside = {path.stem if path.suffix == ".py" else path.name for path in folder.iterdir()}
    if any(name.partition(".")[0] in beside for name in imported(tree)):
        return True
    known = {*own, "object"}
    return any(_dotted(base) not in known for node in own.values() for base in node.bases)


# Paths of the platform


def fixed_paths(folder: Path) -> tuple[FixedPath, ...]:
    """Every string in the package's scripts that begins with a folder of the platform's images."""
    return tuple(entry for script in _scripts(folder) for entry in _fixed_in(script, folder))


def _scripts(folder: Path) -> Iterator[Path]:
    for path in files(folder, depth=5):
        if path.suffix == ".py" and b"/home/m" in content_if_any(path, LARGEST):
            yield path


def _fixed_in(script: Path, folder: Path) -> Iterator[FixedPath]:
    for match, line in texts_beginning(script, FIXED):
        yield FixedPath(match.string, str(script.relative_to(folder)), line, f"{match[1]}/model", "model")
