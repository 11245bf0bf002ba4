"""What a newcomer sees first is short, true and fresh."""

from __future__ import annotations

import re
import runpy

import pytest

from panglot import dialects
from support import pages
from support.server import ROOT

PICTURES = ROOT / "docs" / "pictures"
RECORDED = (PICTURES / "first-minute.txt").read_text()
LISTS = ["README.md", "README.zh-CN.md", "docs/index.md", "docs/zh/index.md"]
"""Pages with the table of platforms."""


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 100
    assert any(line.startswith("![") for line in lines[:5])


def test_the_moving_terminal_is_drawn_from_its_recording() -> None:
    drawn = runpy.run_path(str(PICTURES / "terminal.py"))["drawn"]
    assert (PICTURES / "first-minute.svg").read_text() == drawn(RECORDED), "`make docs` draws it anew"


def test_the_drawings_are_made_from_their_texts() -> None:
    """In both languages: drawing.py refuses words that chinese.toml does not have."""
    pictures = runpy.run_path(str(PICTURES / "drawing.py"))["pictures"]()
    assert pictures
    stale = [path.name for path, picture in pictures.items() if not path.is_file() or path.read_text() != picture]
    assert not stale, "`make docs` draws them anew"


def test_chinese_pages_show_chinese_drawings() -> None:
    drawings = "|".join(path.stem for path in PICTURES.glob("*.drawing"))
    english = re.compile(rf"pictures/({drawings})\.svg")
    shown = {path: english.findall(path.read_text()) for path in (ROOT / "docs" / "zh").rglob("*.md")}
    assert not {path: names for path, names in shown.items() if names}


def test_the_moving_terminal_shows_what_the_readme_shows() -> None:
    """The lines of the README are run; those of the recording are the same, and so are their answers."""
    (ready, *answered) = RECORDED.strip().split("\n\n")
    blocks = pages.blocks((ROOT / "README.md").read_text())
    shown = "".join(block.text for block in blocks if block.language == "console")
    assert shown.startswith(ready.splitlines()[0])
    for exchange in answered:
        typed, said = exchange.splitlines()
        assert pages.is_said(f"{typed}\n{said}", shown.replace(": ...", ": "))


@pytest.mark.parametrize("name", LISTS)
def test_every_platform_is_listed(name: str) -> None:
    text = (ROOT / name).read_text()
    pages_of_platforms = {path.stem for path in (ROOT / "docs" / "coming-from").glob("*.md")}
    assert set(re.findall(r"coming-from/(\w+)\.md", text)) == pages_of_platforms
    assert set(re.findall(r"dialects/(\w+)\.md", text)) == set(dialects.known()) - {"bare"}


@pytest.mark.parametrize("name", ["docs/dialects/index.md", "docs/zh/dialects/index.md"])
def test_every_dialect_is_listed(name: str) -> None:
    listed = re.findall(r"^\| \[`(\w+)`\]\(\1\.md\)", (ROOT / name).read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(dialects.known())
