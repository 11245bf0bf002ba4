"""Whether a script reads its requests by `panglot.request()`: only then its worker gets their headers."""

from __future__ import annotations

import ast
from pathlib import Path

from panglot.errors import StartError
from panglot.packages.source import parse
from panglot_worker.files.package_files import content_if_any

NAMES = ("request", "requests")
MOST_BESIDE = 100
"""How many modules beside a script are looked at."""


def uses_requests(tree: ast.Module, script: Path) -> bool:
    """Whether a script, or a module beside it, may call `panglot.request()`."""
    beside = [file for file in sorted(script.parent.glob("*.py"))[:MOST_BESIDE] if file != script]
    return _uses_request(tree) or any(_uses_request(module) for file in beside if (module := _read(file)) is not None)


def _read(file: Path) -> ast.Module | None:
    """A module that names panglot; None for other modules, and for a broken one: its import will say what is wrong."""
    try:
        return parse(file) if b"panglot" in content_if_any(file) else None
    except (StartError, OSError):
        return None


def _uses_request(tree: ast.Module) -> bool:
    """Whether a module imports `request` or `requests` from panglot, or imports panglot and uses them."""
    whole = False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "panglot":
            if any(alias.name in (*NAMES, "*") for alias in node.names):
                return True
        elif isinstance(node, ast.Import):
            whole = whole or any(alias.name == "panglot" for alias in node.names)
    return whole and any(isinstance(node, ast.Attribute) and node.attr in NAMES for node in ast.walk(tree))
