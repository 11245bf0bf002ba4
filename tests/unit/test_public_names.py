"""What `dir(panglot)` shows can be imported, and the page on the Python API has all of it."""

from __future__ import annotations

import panglot
from support.server import ROOT


def test_dir_shows_the_names_for_scripts_and_the_clients() -> None:
    names = (*panglot.FOR_SCRIPTS, *panglot.CLIENTS)
    assert set(names) == {name for name in dir(panglot) if not name.startswith("__")}
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    for name in names:
        assert getattr(panglot, name).__name__ == name
        assert f"\n### {name}\n" in page
