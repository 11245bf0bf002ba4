"""Every English page is read by `tests/prose.py`, which `make check` runs."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_listed() -> None:
    rules = tomllib.loads((ROOT / "tests" / "prose.toml").read_text())
    listed = {*rules["rewritten"], *rules["generated"]}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("docs/zh/")} <= listed
