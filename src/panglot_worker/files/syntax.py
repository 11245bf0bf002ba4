"""The syntax trees of a package's Python files: they show the names that a script uses, without running it."""

from __future__ import annotations

import ast
import os
from typing import Dict, Iterator, List, Optional, Set, Tuple

from panglot_worker.files import package_files
from panglot_worker.files.package_files import UnreadableFile

LARGEST = 1024 * 1024
MOST = 2000
DEEPEST = 5
SKIPPED = ("__pycache__", "node_modules")


def trees(folder: str, word: bytes) -> Iterator[Tuple[str, ast.Module]]:
    """Path and syntax tree of every script in a folder and below that has the word in it."""
    for path in _scripts(folder):
        try:
            text = package_files.content(path, LARGEST)
            if word in text:
                yield path, package_files.parsed(text, path)
        except (OSError, SyntaxError, UnreadableFile):
            continue


def _scripts(folder: str) -> Iterator[str]:
    left = MOST
    for here, folders, files in os.walk(folder):
        level = here[len(folder) :].count(os.sep)
        keep = [name for name in sorted(folders) if name[0] != "." and name not in SKIPPED]
        keep = [name for name in keep if not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))]
        folders[:] = keep if level < DEEPEST else []
        for name in sorted(files):
            left -= 1
            if left < 0:
                return
            if name.endswith(".py"):
                yield os.path.join(here, name)


def names_used(tree: ast.Module, module: str) -> Dict[str, int]:
    """Every dotted name of a module that a script uses, such as `train.Saver`, with its first line."""
    aliases: Set[str] = set()
    lines: Dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases.update(alias.asname or alias.name for alias in node.names if alias.name == module)
        elif isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            for alias in node.names:
                lines.setdefault(alias.name, node.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = _dotted(node)
            if dotted is not None and dotted[0] in aliases:
                lines.setdefault(".".join(dotted[1:]), node.lineno)
    return lines


def _dotted(node: ast.Attribute) -> Optional[List[str]]:
    names = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    return [inner.id, *names[::-1]] if isinstance(inner, ast.Name) else None
