"""The site builds strictly, its pages load nothing from elsewhere, and each leads to its twin in the other language."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.browser import browsing
from support.server import ROOT

BUILD = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(ROOT / "mkdocs.yml")]
"""Not with --quiet, which hides warnings from the strict mode too."""
SWITCH = re.compile(r'<a class="md-header__button language" lang="(\w+)" href="([^"]+)"')
LARGEST = 25_000_000
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


def test_it_is_small(site: Path) -> None:
    """The theme puts the whole tree of pages into each page, unless `navigation.prune` is on."""
    assert sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) < LARGEST


def test_every_page_leads_to_the_other_language(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name != "404.html":
            (switch,) = SWITCH.findall(page.read_text())
            here = "zh" if page.is_relative_to(site / "zh") else "en"
            assert switch[0] != here
            twin = (page.parent / switch[1]).resolve()
            assert twin.is_file(), f"{page} leads to {switch[1]}"
            assert twin.is_relative_to(site / "zh") == (here == "en")
            inside = page.relative_to(site)
            own = site / inside.relative_to("zh") if here == "zh" else site / "zh" / inside
            assert twin == own or not own.exists()


def test_every_page_says_of_what_kind_it_is(site: Path) -> None:
    unmarked = {"index.html", "contributing.html", "security.html", "changelog.html", "404.html"}
    unmarked |= {f"zh/{name}" for name in unmarked}
    pages = [page for page in site.rglob("*.html") if str(page.relative_to(site)) not in unmarked]
    assert not [page for page in pages if '<p class="kind">' not in page.read_text()]


def test_code_in_a_table_is_not_broken_in_a_word(site: Path) -> None:
    """On a phone `token_file` is in one piece, a flag does not end after its dashes, and a drawing can be read."""
    boxes = "[...document.querySelectorAll('article table code')].filter((code) => {1}).map((code) => {0})"
    with browsing() as browser:
        browser.resize(390, 844, phone=True, dark=False)
        browser.open(f"{site.as_uri()}/reference/settings.html")
        lines = browser.run(
            f"JSON.stringify({boxes.format('code.getClientRects().length', 'code.textContent.length < 15')})"
        )
        assert set(json.loads(lines)) == {1}
        browser.open(f"{site.as_uri()}/how/fates.html")
        assert browser.run("document.querySelector('article img').getBoundingClientRect().width") >= 600
        assert browser.run("document.documentElement.scrollWidth") <= 390


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
        browser.run("document.querySelector('.md-search__input').value = ''")
        browser.type(".md-search__input", "Client")
        browser.run("document.querySelector('.md-search__input').dispatchEvent(new KeyboardEvent('keyup', {key: 't'}))")
        first = "document.querySelector('.md-search-result__link')?.href"
        browser.wait(f"/clients|python/.test({first})", seconds=60)
        browser.run("document.querySelector('.md-search__input').value = ''")
        browser.type(".md-search__input", "--max-batch")
        browser.run("document.querySelector('.md-search__input').dispatchEvent(new KeyboardEvent('keyup', {key: 'h'}))")
        browser.wait(f"/batching|settings/.test({first})", seconds=60)
        assert {url.partition(":")[0] for url in browser.requested} <= {"file", "data", "about"}
