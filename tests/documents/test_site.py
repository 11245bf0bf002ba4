"""The site builds strictly, and its pages load nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.browser import browsing
from support.server import ROOT

BUILD = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(ROOT / "mkdocs.yml")]
LOADS = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["']?(https?:)?//""")


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [*BUILD, "--site-dir", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = built(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    assert not [page for page in pages if LOADS.search(page.read_text())]


def test_it_can_be_read_and_searched_from_files(site: Path) -> None:
    """On a phone, in the dark, without a server and without a network."""
    with browsing() as browser:
        browser.resize(390, 844, phone=True, dark=True)
        browser.open(f"{site.as_uri()}/reference/settings.html")
        assert browser.run("document.body.dataset.mdColorScheme") == "slate"
        assert browser.run("document.documentElement.scrollWidth") <= 390
        browser.type(".md-search__input", "poisonous")
        browser.run("document.querySelector('.md-search__input').dispatchEvent(new KeyboardEvent('keyup', {key: 's'}))")
        browser.wait("!!document.querySelector('.md-search-result__item')", seconds=60)
        assert not browser.complaints
        assert {url.partition(":")[0] for url in browser.requested} <= {"file", "data", "about"}
