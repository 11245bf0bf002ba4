"""How a page looks: on phones and wide screens, by day and by night, in both languages, and read aloud.

With PANGLOT_SHOTS=FOLDER in the environment every look is photographed into that folder, from its top to its end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import panglot
from support.browser import Browser
from support.server import Server

SIZES = ((2560, 1400, False), (1280, 900, False), (390, 844, True), (360, 740, True))
PHOTOGRAPHED = (1280, 390)
LANGUAGES = ("en-US", "zh-CN")
SHOTS = os.environ.get("PANGLOT_SHOTS")

SAID = """(() => {
  const said = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: parent, textContent: text } = walker.currentNode;
    const code = 'script, noscript, .flag, textarea, pre, option, .code, .tree, .message, .bad, .node';
    const talk = '.said, .past, .chat-title, .suggestions';
    const silent = `${code}, ${talk}, .brand, .heading, .card h2, .card .hint, .lead, .how-far`;
    if (!parent.closest(silent)) said.push(text.trim());
  }
  for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
    const all = [...document.querySelectorAll(`[${name}]`)];
    const named = all.filter((one) => !one.closest('pre, .code, .how-far, li button'));
    said.push(...named.map((one) => one.getAttribute(name)));
  }
  return [...new Set(said)].filter((text) => /[A-Za-z]{3}/.test(text) && !/[\\u4e00-\\u9fff]/.test(text));
})()"""
"""What a page says in Latin letters alone, seen or read aloud; messages of the server are left out."""
BELOW_THE_END = "document.documentElement.scrollHeight - Math.max(innerHeight, document.body.offsetHeight)"
"""How far one can scroll below the end of the page, into nothing."""
NAMES = {
    *("API", "JSON", "CPU", "GPU", "worker", "curl", "Python", "requests", "JavaScript", "openai", "tritonclient"),
    *(
        f"Panglot {panglot.__version__}",
        "openapi.json",
        "metrics",
        "p50",
        "p95",
        "p99",
        "4xx",
        "5xx",
        "Ctrl-Enter",
        "panglot.Client",
    ),
}
"""Names that are the same in every language."""


@dataclass(frozen=True)
class Kind:
    """A kind of page: the fixture that serves it, its path, what is there when it is whole, and what is done then."""

    server: str
    path: str
    ready: str
    do: Callable[[Browser], None] = lambda browser: None
    data: frozenset[str] = frozenset()
    """What the package says on it."""
    complaints: frozenset[str] = frozenset()
    """What Chromium is expected to complain about."""
    leave: Callable[[Browser], None] = lambda browser: None
    """What is done before the page is left."""
    is_ours: bool = True
    """Whether all words on it are ours; the page of the API is Swagger UI's, in English."""


def look(browser: Browser, server: Server, name: str, about: Kind, language: str) -> None:
    """In every size by day and by night nothing is cut off, axe-core finds nothing, and all is in one language."""
    browser.speak(language)
    browser.complaints.clear()
    grounds = set()
    for dark in (False, True):
        for width, height, phone in SIZES:
            browser.resize(width, height, phone=phone, dark=dark)
            browser.open("about:blank")
            browser.open(server.url + about.path)
            browser.wait(about.ready, 30)
            about.do(browser)
            assert browser.run("document.documentElement.scrollWidth") <= width, (width, dark)
            assert browser.run(BELOW_THE_END) < 2, (width, dark)
            if width in PHOTOGRAPHED:
                photograph(browser, f"{name}-{language}-{width}-{'dark' if dark else 'light'}")
                found = browser.axe()
                assert found == [], (width, dark, found)
            about.leave(browser)
        grounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    if about.is_ours:
        assert browser.run("document.documentElement.lang") == language.removesuffix("-US")
    if about.is_ours and language == "zh-CN":
        foreign = [text for text in browser.run(SAID) if text not in NAMES | about.data]
        assert foreign == [], foreign
    unexpected = [text for text in browser.complaints if not any(words in text for words in about.complaints)]
    assert unexpected == [], unexpected
    browser.speak(LANGUAGES[0])


def photograph(browser: Browser, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        browser.screenshot(Path(SHOTS, f"{name}.png"), whole=True)
