"""What commands look like in terminals of 80 and 120 columns is what the pictures in docs show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import goldens

CASES = [(name, columns) for name in goldens.SCENES for columns in goldens.WIDTHS]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with goldens.stage() as place:
        yield place


@pytest.mark.parametrize(("name", "columns"), CASES, ids=[f"{name} {columns}" for name, columns in CASES])
def test_the_picture_is_of_today(name: str, columns: int, folder: Path) -> None:
    kept = (goldens.HERE / f"{name}-{columns}.ansi").read_text()
    shown = goldens.seen(name, columns, folder)
    assert goldens.alike(name, shown) == goldens.alike(name, kept), "make pictures, or: docs/pictures/take.py terminals"


@pytest.mark.parametrize("name", goldens.SCENES)
def test_nothing_is_broken_at_80_columns(name: str) -> None:
    """But for lines that are there to be copied in one piece."""
    lines = goldens.DOT.sub("", (goldens.HERE / f"{name}-80.ansi").read_text()).splitlines()
    assert not [line for line in lines if len(line) > 80 and "curl " not in line]


def test_the_documents_show_them() -> None:
    pages = goldens.ROOT / "docs" / "reference"
    text = (pages / "tools.md").read_text() + (pages / "measuring.md").read_text()
    for name in goldens.SCENES:
        assert f"pictures/terminal/{name}-80.svg" in text
