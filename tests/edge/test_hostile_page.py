"""docs/reference/hostile-http.md says what the server does: its probes run again, with the limits on time shrunk."""

from __future__ import annotations

import re

import pytest

from support import hostile
from support.server import ROOT

PAGE = ROOT / "docs" / "reference" / "hostile-http.md"
QUICK = ("--header-timeout", "1s", "--body-gap", "1s", "--body-rate-after", "1s")
SECONDS = re.compile(r"\d+ s\b")


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    return hostile.run(*QUICK)


@pytest.mark.parametrize("probe", hostile.PROBES)
def test_the_page_tells_what_happens(answers: dict[str, str], probe: str) -> None:
    """The cell of Panglot, but for how long it took."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {probe} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert SECONDS.sub("", cells[1]) == SECONDS.sub("", answers[probe])
    assert "**" not in cells[1]
    assert " | ".join(cells[2:]) == hostile.MEASURED[probe]


def test_the_page_is_what_the_probes_write() -> None:
    """All but the cells of Panglot is generated: edit the probes, not the page."""
    written = {
        line.split("|")[1].strip(): line.split("|")[2].strip() for line in PAGE.read_text().splitlines() if "|" in line
    }
    assert hostile.page({probe: written[probe] for probe in hostile.PROBES}) == PAGE.read_text()
