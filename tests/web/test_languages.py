"""The pages in English and Chinese: every phrase is in both dictionaries, and nothing is said outside of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.web.pages.assets import OURS
from panglot.web.pages.language import LANGUAGES, wanted
from support.scripts import literals
from support.server import ROOT, serving

DIALECTS = ROOT / "src" / "panglot" / "dialects"
FOLDERS = [OURS, *sorted({file.parent for file in DIALECTS.glob("*/pages/phrases.en.json")})]
CODE = ("snippets.js", "coloring.js", "docs.js")
"""Files whose texts are code, of languages or of Swagger UI."""
NOT_SAID = re.compile(r"(class: ([\w !&]+\? )?|rel: |preserveAspectRatio: |event.key .== |scroller\()$")
"""What stands before a text that is for the browser alone."""
SENTENCE = re.compile(r"(^|[\s(])[A-Z][a-z]+\b|[a-z]{2,} [a-z]{2,}")
DATA = {
    *("Ctrl-Enter", "Bearer ", "Run the model on one request", "panglot chat ", "panglot feed", "no phrase "),
    *("number wide", "wide hint"),
}
"""Texts that look like words of the page and are none: a key, a header, the server's document, storage, classes."""
BETWEEN = {"and_then"}
"""Phrases that stand between two others, with the space that the language wants there."""


def dictionary(folder: Path, language: str) -> dict[str, str | list[str]]:
    known: dict[str, str | list[str]] = json.loads((folder / f"phrases.{language}.json").read_text())
    return known


def scripts(folder: Path) -> Iterator[tuple[Path, str]]:
    for file in sorted(folder.glob("*.js")):
        yield file, file.read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_no_dictionary_lacks_a_phrase(folder: Path) -> None:
    english, chinese = (dictionary(folder, language) for language in LANGUAGES)
    assert list(english) == list(chinese)
    for key, phrase in english.items():
        forms = [phrase] if isinstance(phrase, str) else phrase
        assert all(form.strip() == form != "" or key in BETWEEN for form in [*forms, chinese[key]]), key
        names = {tuple(sorted(re.findall(r"\{\w+\}", form))) for form in [*forms, str(chinese[key])]}
        assert len(names) == 1, f"{key} is filled in with other values"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_phrase_is_there_and_said(folder: Path) -> None:
    known = {*dictionary(OURS, "en"), *dictionary(folder, "en")}
    text = "\n".join(text for _, text in scripts(folder))
    shell = "\n".join(file.read_text() for file in OURS.glob("*.html"))
    said = set(re.findall(r'phrase\("(\w+)"', text))
    assert said <= known, "no phrase is missing"
    kinds = {*re.findall(r"phrase\(`(\w+_)\$\{", text), *(f"{kind}_" for kind in re.findall(r'spoken\("(\w+)"', text))}
    others = {key for key in dictionary(folder, "en") if key not in said}
    by_kind = {key for key in others if key.startswith(("page_", *kinds))}
    assert {key for key in others - by_kind if f"${key}" not in shell} == set(), "every phrase is said somewhere"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_nothing_is_said_outside_of_the_dictionaries(folder: Path) -> None:
    found = []
    for file, text in scripts(folder):
        if file.name in CODE:
            continue
        texts = [words for before, words in literals(text) if not NOT_SAID.search(before)]
        found += [(file.name, words) for words in texts if SENTENCE.search(words) and words not in DATA]
    assert found == []


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("*", "en"),
        ("fr-FR,fr;q=0.9", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("zh-TW", "zh-CN"),
        ("en-GB,en;q=0.9,zh-CN;q=0.8", "en"),
        ("en;q=0.3, ZH-hans ;q=0.7", "zh-CN"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=nonsense", "en"),
        ("de, zh;q=0.5", "zh-CN"),
        ("zh;" * 5000, "zh-CN"),
    ],
)
def test_the_language_that_a_browser_wants(header: str, language: str) -> None:
    assert wanted(header) == language


def test_a_page_says_its_language_before_any_script_runs() -> None:
    with serving("documented_json", env={"PANGLOT_TOKEN": "secret"}) as server:
        for header, title in (("zh-CN", "登录"), ("en", "Log in"), ("fr", "Log in")):
            answer = server.new_client().get("/", headers={"accept": "text/html", "accept-language": header})
            assert f"<title>{title} · Panglot</title>" in answer.text
        client = server.new_client()
        client.headers.update({"authorization": "Bearer secret", "accept-language": "zh-CN,zh;q=0.9"})
        for path, title in (("/", "试用"), ("/status", "状态"), ("/docs", "API")):
            page = client.get(path).text
            assert '<html lang="zh-CN">' in page
            assert f"<title>{title} · documented_json</title>" in page
            assert '<a href="status"' in page
            assert ">状态</a>" in page
