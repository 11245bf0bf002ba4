"""Pages in other languages: which page each translates, and whether that one has changed since."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from support import pages
from support.server import ROOT

MARK = re.compile(r"(?:---|<!--)\noriginal: (?P<original>\S+)\nhash: (?P<hash>\S+)\n(?:\w+: .*\n)*(?:---|-->)\n")
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


class Translation(NamedTuple):
    """A page, the path of its original, and what the original was like when it was translated."""

    path: Path
    original: str
    fingerprint: str


def translations() -> list[Translation]:
    """All translated pages. Raises AssertionError for a page that does not say what it translates."""
    every = []
    for path in (ROOT / "README.zh-CN.md", *sorted((ROOT / "docs" / "zh").rglob("*.md"))):
        mark = MARK.match(path.read_text())
        assert mark, f"{path} begins without original: and hash:"
        every.append(Translation(path, mark["original"], mark["hash"]))
    return every


def fingerprint(page: str) -> str:
    """A hash of what a translation must follow: headings, commands and their output, and the rows of tables."""
    blocks = [block.text for block in pages.blocks(page)]
    prose = pages.BLOCK.sub("", page)
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    return hashlib.sha256("\n".join([*HEADING.findall(prose), *rows, *blocks]).encode()).hexdigest()[:16]
