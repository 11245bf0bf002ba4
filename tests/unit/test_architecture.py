"""docs/architecture.md names files, folders and classes that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text()
QUOTED = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
FILES = [name for name in QUOTED if re.fullmatch(r"[\w/]+(\.py|/)", name)]
NAMES = [name for name in QUOTED if re.fullmatch(r"[A-Z][a-z]\w*(\.\w+)?", name)]
LONGEST = 3600
"""Words: whoever adds some takes others away."""


def of_classes() -> set[str]:
    """Every class of the source, and every `Class.member`."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names |= {node.name} | {f"{node.name}.{member}" for member in members(node)}
    return names


def members(node: ast.ClassDef) -> set[str]:
    """What a class defines: its methods, and the attributes that it declares or sets on itself."""
    declared = {part.target for part in node.body if isinstance(part, ast.AnnAssign)}
    return (
        {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
        | {part.id for part in declared if isinstance(part, ast.Name)}
        | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)}
    )


@pytest.mark.parametrize("name", FILES)
def test_files_are_there(name: str) -> None:
    assert (ROOT / name).exists() or next((ROOT / "src").rglob(name), None)


def test_classes_are_there() -> None:
    assert NAMES
    assert set(NAMES) - of_classes() == set()


def test_the_map_has_every_folder() -> None:
    """The folders of the two packages, and the folders in these; dialects and tools are described as a whole."""
    inner = [path.parent.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py")]
    folders = {Path(*folder.parts[1:3]) for folder in inner if folder.parts[1:]}
    wanted = {folder for folder in folders if folder.parts[1:] == () or folder.parts[0] not in ("dialects", "tools")}
    named = {name.rstrip("/").rpartition("/")[2] for name in FILES if name.endswith("/")}
    assert {str(folder) for folder in wanted if folder.name not in named} == set()


def test_it_is_short() -> None:
    assert len(TEXT.split()) <= LONGEST
