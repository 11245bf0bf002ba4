"""Exceptions, held by the source itself."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def test_no_exception_is_kept_to_be_raised_again() -> None:
    """Each time it is raised, its traceback grows by the frames of whoever it was raised for, and keeps them."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        kept = {target.id for target in targets(tree) if isinstance(target, ast.Name)}
        raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
        again = [
            error.id for error in raised if isinstance(error, ast.Name) and (error.id in kept or error.id.isupper())
        ]
        assert not again, f"{path} raises {again}"


def targets(tree: ast.Module) -> list[ast.expr]:
    """What a module assigns a call to."""
    found: list[ast.expr] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            found += node.targets
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
            found.append(node.target)
    return found
