"""What a newcomer sees first is short, true and fresh."""

from __future__ import annotations

import runpy

from support import pages
from support.server import ROOT

PICTURES = ROOT / "docs" / "pictures"
RECORDED = (PICTURES / "first-minute.txt").read_text()


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 100
    assert any(line.startswith("![") for line in lines[:5])


def test_the_moving_terminal_is_drawn_from_its_recording() -> None:
    drawn = runpy.run_path(str(PICTURES / "terminal.py"))["drawn"]
    assert (PICTURES / "first-minute.svg").read_text() == drawn(RECORDED), "`make docs` draws it anew"


def test_the_drawings_are_made_from_their_texts() -> None:
    drawn = runpy.run_path(str(PICTURES / "drawing.py"))["drawn"]
    texts = sorted(PICTURES.glob("*.drawing"))
    assert texts
    stale = [text.name for text in texts if text.with_suffix(".svg").read_text() != drawn(text.read_text())]
    assert not stale, "`make docs` draws them anew"


def test_the_moving_terminal_shows_what_the_readme_shows() -> None:
    """The lines of the README are run; those of the recording are the same, and so are their answers."""
    (ready, *answered) = RECORDED.strip().split("\n\n")
    shown = next(block.text for block in pages.blocks((ROOT / "README.md").read_text()) if block.language == "console")
    assert shown.startswith(ready.splitlines()[0])
    for exchange in answered:
        typed, said = exchange.splitlines()
        assert pages.is_said(f"{typed}\n{said}", shown.replace(": ...", ": "))
