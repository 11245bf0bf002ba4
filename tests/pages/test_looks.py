"""How all pages look, see `support.looks`, and whether they can be used by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.tools.scaffold import create
from support.browser import Browser, browsing
from support.looks import LANGUAGES, Kind, look
from support.server import PACKAGES, Server, serving

# Servers


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_json", "--dev", "--workers", "1:2") as server:
        for text in ("fox", "fail"):
            server.predict({"text": text, "labels": ["fox"], "options": None}, headers={"x-request-id": f"of-{text}"})
        yield server


@pytest.fixture(scope="module")
def several() -> Iterator[Server]:
    with serving("documented_json", f"parrot={PACKAGES / 'chat'}") as server:
        yield server


@pytest.fixture(scope="module")
def chat() -> Iterator[Server]:
    with serving("pages_chat") as server:
        yield server


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    with serving("job_steps", "--on-leave", "interrupt") as server:
        for body in ({"steps": 1}, {"steps": 600, "pause": 1}, {"steps": 5}):
            server.predict(body, headers={"prefer": "respond-async"})
        yield server
        for job in server.client.get("/jobs").json()["jobs"]:
            server.client.delete(f"/jobs/{job['id']}")


@pytest.fixture(scope="module")
def closed() -> Iterator[Server]:
    with serving("documented_json", env={"PANGLOT_TOKEN": "secret"}) as server:
        yield server


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("videos") / "ball"
    create("megflow", folder, kind="video")
    with serving(folder, "--uri-root", str(folder)) as server:
        yield server


# Pages


def run_once(browser: Browser) -> None:
    browser.click("form.request .primary")
    browser.wait("!!document.querySelector('.facts')")


def open_row(browser: Browser) -> None:
    browser.click("tr[data-id=of-fail] button")
    browser.wait("!!document.querySelector('.detail:not([hidden]) .log')")


def talk(browser: Browser) -> None:
    browser.type(".composer textarea", "How do I count lines?")
    browser.press("Enter")
    browser.wait("Number(document.querySelector('.messages').dataset.done ?? 0) > 0", 30)


def talk_with_settings(browser: Browser) -> None:
    talk(browser)
    browser.run("[...document.querySelectorAll('.chat-bar button')].at(-1).click()")
    browser.wait("!!document.querySelector('.drawer:not([hidden]) .snippet')")


OF_PACKAGE = frozenset({"documented_json", "Scores a text against labels", "text", "labels", "options", "fox", "dog"})
OPTIONS = frozenset({"temperature", "max_tokens", "top_p"})
KINDS = {
    "playground": Kind(
        "server", "/", "!!document.querySelector('form.request')", run_once, OF_PACKAGE | {"a quick brown fox"}
    ),
    "status": Kind(
        "server", "/status", "document.querySelectorAll('tr[data-id]').length > 1", open_row, OF_PACKAGE | {"/predict"}
    ),
    "home": Kind("several", "/", "document.querySelectorAll('.card').length === 2"),
    "chat": Kind("chat", "/", "!!document.querySelector('.composer')", talk, OPTIONS),
    "drawer": Kind("chat", "/", "!!document.querySelector('.composer')", talk_with_settings, OPTIONS),
    "jobs": Kind(
        "jobs", "/jobs", "document.querySelectorAll('tr[data-id]').length === 3", data=frozenset({"job_steps"})
    ),
    # The token is asked for by a 401.
    "login": Kind("closed", "/", "!!document.querySelector('#token')", complaints=frozenset({"401"})),
    "videos": Kind("videos", "/videos", "!!document.querySelector('form.request')"),
    "graph": Kind("videos", "/graph", "!!document.querySelector('.graph svg .node')"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_page(kind: str, language: str, browser: Browser, request: pytest.FixtureRequest) -> None:
    about = KINDS[kind]
    look(browser, request.getfixturevalue(about.server), kind, about, language)


# By the keyboard


FOCUSABLE = """(() => {
  const all = 'a[href], button, input, select, textarea, summary, [tabindex]';
  window.wanted = new Set([...document.querySelectorAll(all)].filter((one) =>
    one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true })));
  return window.wanted.size;
})()"""
FOCUSED = """(() => {
  const one = document.activeElement;
  window.wanted.delete(one);
  const marked = (element) => {
    const { outlineStyle, boxShadow } = getComputedStyle(element);
    return outlineStyle !== 'none' || boxShadow !== 'none';
  };
  const label = one.id && document.querySelector(`label[for="${one.id}"]`);
  const seen = one.matches('.unseen') ? [label] : [one, one.closest('.composer-row')].filter(Boolean);
  return one === document.body || seen.some(marked) ? '' : one.outerHTML.slice(0, 200);
})()"""
"""What has the focus and does not show it."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_control_is_reached_by_tab_and_shows_it(
    kind: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    about = KINDS[kind]
    server: Server = request.getfixturevalue(about.server)
    browser.resize(1280, 900)
    browser.open("about:blank")
    browser.open(server.url + about.path)
    browser.wait(about.ready, 30)
    about.do(browser)
    count = browser.run(FOCUSABLE)
    assert count >= 4
    unmarked = set()
    for _ in range(2 * count + 10):
        browser.press("Tab")
        unmarked |= {browser.run(FOCUSED)} - {""}
        if not browser.run("[...window.wanted].some((one) => one.isConnected)"):
            break
    left = browser.run("[...window.wanted].filter((one) => one.isConnected).map((one) => one.outerHTML.slice(0, 200))")
    assert left == []
    assert unmarked == set()


def test_everything_is_reached_by_the_keyboard(server: Server, browser: Browser) -> None:
    browser.resize(1280, 900)
    browser.open(server.url)
    browser.wait(KINDS["playground"].ready)
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
    browser.wait(KINDS["playground"].ready)
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
    browser.wait(KINDS["status"].ready)
    tab_to(browser, "tr[data-id] button")
    for is_open in ("true", "false"):
        browser.press("Enter")
        browser.wait(f"document.activeElement.getAttribute('aria-expanded') === '{is_open}'")


def test_videos_in_a_browser(videos: Server, browser: Browser, tmp_path: Path) -> None:
    """Started by path, with what nodes drew and what they said; an upload; one that cannot be; kept with the reason."""
    browser.resize(1280, 900)
    browser.open(videos.url + "/videos")
    browser.wait(KINDS["videos"].ready)
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
