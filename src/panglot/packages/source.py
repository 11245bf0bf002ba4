"""Reading scripts without running them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from panglot.errors import StartError
from panglot_worker.files import package_files
from panglot_worker.files.package_files import UnreadableFile

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parse(script: Path) -> ast.Module:
    """The script's syntax tree. Raises StartError with file and line."""
    try:
        return package_files.tree(script)
    except SyntaxError as error:
        raise StartError(f"syntax error: {error.msg}", file=str(script), line=error.lineno or 0) from None
    except UnreadableFile as error:
        raise unreadable(error) from None


def texts_beginning(script: Path, beginning: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
    """Every text in a script that has one line and begins with a pattern, and its line number.

    A script that cannot be read has none: its import will say what is wrong.
    """
    try:
        tree = parse(script)
    except StartError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            match = beginning.match(node.value)
            if match is not None:
                yield match, node.lineno


def unreadable(error: UnreadableFile) -> StartError:
    """The error to raise about a file of a package that cannot be read."""
    return StartError(error.problem, file=error.file, line=error.line)


def functions(body: list[ast.stmt]) -> dict[str, Function]:
    """The functions defined directly in a body, by name."""
    return {node.name: node for node in body if isinstance(node, Function)}


def classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def imported(tree: ast.Module) -> dict[str, int]:
    """Every module that a script imports, anywhere in it, by its dotted name, with the first line that imports it."""
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            lines[name] = min(lines.get(name, node.lineno), node.lineno)  # type: ignore[attr-defined]
    return lines


def bound_elsewhere(tree: ast.Module) -> dict[str, int]:
    """Names bound at the top level by import or assignment, with their line."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update({alias.asname or alias.name: node.lineno for alias in node.names})
        elif isinstance(node, ast.Assign):
            names.update({target.id: node.lineno for target in node.targets if isinstance(target, ast.Name)})
    return names
