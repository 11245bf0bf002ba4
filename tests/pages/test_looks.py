"""How all pages look: on phones and wide screens, by day and by night, and to those who do not see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.tools.scaffold import create
from support.browser import Browser, browsing
from support.server import Server, serving

SIZES = ((2560, 1400, False), (1280, 900, False), (390, 844, True), (360, 740, True))
READY = {
    "/": "!!document.querySelector('form.request')",
    "/status": "document.querySelectorAll('tr[data-id]').length > 0",
    "/videos": "!!document.querySelector('form.request')",
    "/graph": "!!document.querySelector('.graph svg .node')",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev") as server:
        for text in ("a fox", "fail"):
            server.predict({"text": text, "labels": ["fox"], "options": None})
        yield server


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("videos") / "ball"
    create("megflow", folder, kind="video")
    with serving(folder, "--uri-root", str(folder)) as server:
        yield server


def looked_at(browser: Browser, server: Server, path: str) -> None:
    """Open the page in every size by day and by night; nothing is cut off, and axe-core finds nothing."""
    grounds = set()
    for dark in (False, True):
        for width, height, phone in SIZES:
            browser.resize(width, height, phone=phone, dark=dark)
            browser.open(server.url + path)
            browser.wait(READY[path])
            if path == "/":
                browser.click("form.request .primary")
                browser.wait("!!document.querySelector('.facts')")
            assert browser.run("document.documentElement.scrollWidth") <= width, (path, width)
        grounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
        browser.resize(1280, 900, dark=dark)
        assert browser.axe() == [], (path, dark)
    assert len(grounds) == 2


@pytest.mark.parametrize("path", ["/", "/status"])
def test_pages_of_every_server(path: str, server: Server, browser: Browser) -> None:
    browser.complaints.clear()
    looked_at(browser, server, path)
    assert browser.complaints == []


@pytest.mark.parametrize("path", ["/videos", "/graph"])
def test_pages_of_graphs(path: str, videos: Server, browser: Browser) -> None:
    browser.complaints.clear()
    looked_at(browser, videos, path)
    assert browser.complaints == []


def test_logging_in(browser: Browser) -> None:
    with serving("documented_json", env={"PANGLOT_TOKEN": "secret"}) as server:
        for dark in (False, True):
            browser.resize(390, 844, phone=True, dark=dark)
            browser.open(server.url)
            browser.wait("!!document.querySelector('#token')")
            assert browser.run("document.documentElement.scrollWidth") <= 390
            assert browser.axe() == []


def test_everything_is_reached_by_the_keyboard(server: Server, browser: Browser) -> None:
    browser.resize(1280, 900)
    browser.open(server.url)
    browser.wait(READY["/"])
    reached = []
    for _ in range(16):
        browser.press("Tab")
        reached.append(browser.run("document.activeElement.innerText || document.activeElement.id"))
    assert reached[0] == "Skip to content"
    for words in ("Playground", "Status", "API", "Run", "Reset", "Copy link"):
        assert words in reached, reached


def tab_to(browser: Browser, selector: str, most: int = 60) -> None:
    """Press Tab until such an element has the focus."""
    for _ in range(most):
        browser.press("Tab")
        if browser.run(f"document.activeElement.matches('{selector}')"):
            return
    raise AssertionError(f"{selector} is not reached")


def test_a_request_and_its_row_by_the_keyboard_alone(server: Server, browser: Browser) -> None:
    browser.resize(1280, 900)
    browser.open(server.url)
    browser.wait(READY["/"])
    tab_to(browser, ".request textarea")
    browser.press("Enter", control=True)
    browser.wait("!!document.querySelector('.facts')")
    tab_to(browser, ".result [role=tab][aria-selected=true]")
    shown = browser.run("document.querySelector('.result [role=tabpanel]').innerText")
    browser.press("ArrowRight")
    assert browser.run("document.activeElement.matches('.result [role=tab][aria-selected=true]')")
    assert browser.run("document.querySelector('.result [role=tabpanel]').innerText") != shown
    tab_to(browser, ".code-of summary")
    browser.press("Enter")
    browser.wait("!document.querySelector('.code-of').open")
    browser.open(server.url + "/status")
    browser.wait(READY["/status"])
    tab_to(browser, "tr[data-id] button")
    for is_open in ("true", "false"):
        browser.press("Enter")
        browser.wait(f"document.activeElement.getAttribute('aria-expanded') === '{is_open}'")


def test_videos_in_a_browser(videos: Server, browser: Browser, tmp_path: Path) -> None:
    """Started by path, with what nodes drew and what they said; an upload; one that cannot be; kept with the reason."""
    browser.resize(1280, 900)
    browser.open(videos.url + "/videos")
    browser.wait(READY["/videos"])
    browser.type("form.request input[type=text]", "clip.mp4")
    browser.click("form.request .primary")
    browser.wait("document.body.innerText.includes('finished')", 30)
    browser.wait("document.querySelectorAll('.stream .events li').length > 0", 30)
    assert "It was played to its end." in browser.text()
    browser.run("document.querySelector('form.request input[type=text]').value = 'nothing.mp4'")
    browser.click("form.request .primary")
    browser.wait("/nothing.mp4[^]*failed|4\\d\\d:/.test(document.body.innerText)", 30)
    root = Path(videos.client.get("/list").json()[0]["url"]).name
    assert root == "clip.mp4"
