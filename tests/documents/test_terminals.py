"""A reader who types a page, line by line, is never stuck: before a terminal is used again, its server is stopped."""

from __future__ import annotations

import re

import pytest

from support import pages
from support.server import ROOT

TERMINAL = re.compile(r'title="((?:Terminal|终端) \d)"')
SERVES = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*panglot (?:serve|tiinfer)\b", re.MULTILINE)
ENDS = re.compile(r"^error:", re.MULTILINE)
STOP = "Ctrl-C"
PAGES = [
    str(path.relative_to(ROOT))
    for folder in ("docs", "docs/zh")
    for path in sorted([*(ROOT / folder).glob("*.md"), *(ROOT / folder).glob("[cgt]*/*.md")])
]
"""First pages, tutorials, guides and migrations."""


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", *PAGES])
def test_a_server_is_stopped_before_its_terminal_is_used_again(name: str) -> None:
    text = (ROOT / name).read_text()
    served: dict[str, int] = {}
    for block in pages.BLOCK.finditer(text):
        if terminal := TERMINAL.search(block["info"]):
            start = served.pop(terminal[1], None)
            between = text[start : block.start()] if start is not None else STOP
            line = text.count("\n", 0, block.start()) + 1
            assert STOP in between, f"{name}:{line}: {terminal[1]} still has a server; say that it must be stopped"
            if SERVES.search(block["text"]) and not ENDS.search(block["text"]):
                served[terminal[1]] = block.end()
    if served and not name.startswith("README"):
        assert STOP in text[max(served.values()) :], f"{name}: say at the end how the server is stopped"
