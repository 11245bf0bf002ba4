"""What the reference says is what the code says, and every failure it can word is explained in Troubleshooting."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

from panglot.jobs.job import DAMAGED, DISK, FULL, KEY_REUSED, UNAVAILABLE
from support.server import ROOT, serving

SITE = ROOT / "docs" / "site"
TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
QUOTED = re.compile(r"^\| ([^|]*`[^|]*) \|", re.MULTILINE)
SOURCE = " ".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))


class Said(NamedTuple):
    """What docs/site says of the code."""

    pages: dict[str, str]
    codes: list[str]


@pytest.fixture(scope="module")
def said() -> Said:
    """Said in a process of its own."""
    program = (
        "import facts, json, reference\n"
        "print(json.dumps([reference.pages(), [failure.code for failure in facts.failures()]]))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=SITE, capture_output=True, text=True, check=True)
    return Said(*json.loads(done.stdout))


def test_pages_that_come_from_the_code_are_fresh(said: Said) -> None:
    pages = said.pages
    assert len(pages) >= 7
    stale = [name for name, text in pages.items() if (ROOT / "docs" / "reference" / name).read_text() != text]
    assert not stale, "`make docs` writes them anew"


@pytest.mark.parametrize("page", ["troubleshooting.md", "reference/errors.md"])
def test_every_code_is_explained(page: str, said: Said) -> None:
    text = (ROOT / "docs" / page).read_text()
    codes = set(said.codes)
    assert len(codes) > 40
    assert not [code for code in codes if f"`{code}`" not in text]


def test_codes_of_jobs_are_among_them(said: Said) -> None:
    refused = {FULL, DISK, UNAVAILABLE, KEY_REUSED, DAMAGED, "jobs_readers"}
    ended = {"body_damaged", "interrupted", "row_lost", "server_died", "stream_failed"}
    assert refused | ended <= set(said.codes)
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", said.pages["errors.md"], re.MULTILINE))
    statuses = {
        "jobs_full": "429",
        "jobs_disk": "507",
        "jobs_unavailable": "503",
        "answer_damaged": "500, job",
        "row_lost": "job",
    }
    assert {code: rows[code] for code in statuses} == statuses


def test_lines_that_are_quoted_are_said() -> None:
    """What Troubleshooting shows as the line of a start that failed stands in the source."""
    text = TROUBLESHOOTING.read_text().partition("## Starts that fail")[2].partition("\n## ")[0]
    quoted = [line for cell in QUOTED.findall(text) for line in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) > 12
    pieces = {piece.strip() for line in quoted for piece in line.split("...")} - {"", "error:", "'"}
    assert not [piece for piece in pieces if not re.search(re.escape(piece).replace("'", "['\\\\]*"), SOURCE)]


def test_every_series_that_a_server_shows_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    with serving("stages", "--pools", "preprocess=1") as server:
        shown = re.findall(r"^# HELP (\S+)", server.client.get("/metrics").text, re.MULTILINE)
    assert len(shown) > 20
    assert not [name for name in shown if f"`{name}`" not in page]
