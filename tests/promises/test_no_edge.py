"""Output that is no terminal is never broken to a width, however long the paths in it are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.server import PACKAGES, ROOT, panglot


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A package at a path of more than 300 characters."""
    folder = tmp_path.joinpath(*("a-folder-with-quite-a-long-name",) * 10, "function")
    shutil.copytree(PACKAGES / "function", folder)
    (folder / "two words.json").write_text('"tea"')
    return folder


@pytest.mark.parametrize("columns", ["", "40"])
def test_tables_in_a_pipe_have_whole_lines(far: Path, columns: str) -> None:
    env = {"COLUMNS": columns, "FORCE_COLOR": "1"} if columns else {}
    file = str(far / "two words.json")
    told = panglot("inspect", str(far), env=env).stdout
    assert str(far / "model.py") in told
    table = panglot("run", str(far), file, "--format", "table", env=env).stdout
    assert len(table.splitlines()) == 2
    assert file in table
    assert '{"got": "tea"}' in table
    assert str(far) in panglot("doctor", str(far), "--port", "0", env=env).stdout


def test_a_comparison_in_a_pipe_has_whole_lines(far: Path, tmp_path: Path) -> None:
    file = str(far / "two words.json")
    done = panglot("check", str(far), file, "--against", str(ROOT / "tests/packages/function"))
    assert file in done.stdout
