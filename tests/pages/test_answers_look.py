"""How the playground looks with answers and failures of every kind, see `support.looks`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PIL import Image

from support.browser import Browser
from support.looks import LANGUAGES, Kind, look
from support.playground import choose_route, run
from support.server import PACKAGES, Server, serving

FORM = "!!document.querySelector('form.request')"
RESULT = "document.querySelector('.result')"


@pytest.fixture(scope="module")
def text() -> Iterator[Server]:
    with serving("pages_text", "--dev") as server:
        yield server


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two images in its folder of examples."""
    folder = tmp_path_factory.mktemp("media") / "street"
    shutil.copytree(PACKAGES / "pages_media", folder)
    (folder / "examples").mkdir()
    for name, colour in (("day.png", "#8fc1e3"), ("night.png", "#1b2440")):
        image = Image.new("RGB", (480, 320), colour)
        image.paste("#d9532c", (38, 144, 202, 256))
        image.paste("#e8c39e", (288, 96, 346, 272))
        image.save(folder / "examples" / name)
    with serving(folder, "--on-leave", "interrupt") as server:
        yield server


@pytest.fixture(scope="module")
def notes() -> Iterator[Server]:
    with serving("own_routes") as server:
        yield server


@pytest.fixture(scope="module")
def loading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("loading") / "slow"
    folder.mkdir()
    script = "import time\n\ndef load():\n    time.sleep(600)\n\ndef predict(text: str):\n    return text\n"
    (folder / "model.py").write_text(script)
    with serving(folder, ready=False) as server:
        yield server


@pytest.fixture(scope="module")
def closed() -> Iterator[Server]:
    with serving("documented_form", env={"PANGLOT_TOKEN": "secret"}) as server:
        yield server


def ran(route: str, shown: str) -> Callable[[Browser], None]:
    """Choose a route by its end, run it, and wait for what is shown."""

    def do(browser: Browser) -> None:
        if route:
            choose_route(browser, route)
        run(browser)
        browser.wait(f"!!{RESULT}.querySelector({shown!r})")

    return do


def box_an_example(browser: Browser) -> None:
    browser.wait("!!document.querySelector('.request .file img')")
    run(browser)
    browser.wait("document.querySelectorAll('.stage svg rect').length === 2")


def run_slowly(browser: Browser) -> None:
    choose_route(browser, "/slow")
    browser.click("form.request .primary")
    browser.wait(f"!!{RESULT}.querySelector('.reported progress')")


def stop(browser: Browser) -> None:
    browser.run("document.querySelector('.runbar button:not(.primary)').click()")
    browser.wait("!document.querySelector('form.request .primary').disabled")


def leave_out_what_is_required(browser: Browser) -> None:
    browser.wait("!!document.querySelector('.request .file img')")
    browser.run("document.querySelector('.request .file button').click()")
    browser.click("form.request .primary")
    browser.wait("document.querySelector('.request > .wrong').innerText.includes('image')")


def search(browser: Browser) -> None:
    browser.run("document.querySelector('.advanced').open = true")
    choose_route(browser, "GET /notes")
    run(browser)


def try_an_operation(browser: Browser) -> None:
    """A form of Swagger UI, filled and sent, with its answer."""
    browser.click("#operations-inference-predict .opblock-summary-control")
    browser.click(".try-out__btn")
    browser.click(".execute")
    browser.wait("!!document.querySelector('.live-responses-table .microlight[tabindex]')")


def authorize(browser: Browser) -> None:
    """A form with files, and the dialog that asks for the token above it."""
    if browser.run("!!document.querySelector('#token')"):
        browser.type("#token", "secret")
        browser.run("document.querySelector('#token').form.requestSubmit()")
    browser.click("#operations-inference-predict .opblock-summary-control")
    browser.click(".try-out__btn")
    browser.click(".btn.authorize")
    browser.wait("!!document.querySelector('.close-modal[aria-label]')")


SAID_BY_TEXT = frozenset({
    "text", "tone", "note", "most", "again", "lovely", "rain", "joy", "fear", "name", "count", "one", "two", "bold",
    "The mood of a text.", "<img src=x onerror='window.harmed=1'>", "str What a lovely day", "str LOUD", "str sunny",
    "NoneType None", "bool False",
})  # fmt: skip
SAID_BY_MEDIA = frozenset({
    "image", "least", "colour", "text", "seconds", "count", "steps", "day", "night", "day.png", "city", "sold",
    "growth", "open", "Paris", "Rome", "Beijing", "Reykjavík", "true", "false", "car", "person", "car 94.0 %",
    "person 81.0 %", "Draw a street.", "Say a text as a tone.", "Film a street.", "A table of sales.",
    "A file to keep.", "Take long, and say how far it is.", "Refuse whatever comes.",
})  # fmt: skip
SAID_BY_NOTES = frozenset({"least", "order", "tag", "text", "The notes with at least so many stars."})
FAILS = frozenset({"the server responded with a status of", "ERR_INCOMPLETE_CHUNKED_ENCODING"})


def of_text(do: Callable[[Browser], None], complaints: frozenset[str] = frozenset()) -> Kind:
    return Kind("text", "/", FORM, do, SAID_BY_TEXT, complaints)


def of_media(do: Callable[[Browser], None], complaints: frozenset[str] = frozenset(), **more: Any) -> Kind:
    return Kind("media", "/", FORM, do, SAID_BY_MEDIA, complaints, **more)


KINDS = {
    "text": of_text(ran("", ".values")),
    "scores": of_text(ran("/mood", ".headline-answer")),
    "markdown": of_text(ran("/markdown", ".markdown")),
    # What is in the frame may ask for nothing, which Chromium complains about.
    "html": of_text(ran("/page", ".framed"), frozenset({"sandboxed", "Content Security Policy"})),
    "broken": of_text(ran("/broken", ".broken")),
    "breaks-off": of_text(ran("/fails", ".failure"), FAILS),
    "boxes": of_media(box_an_example),
    "image": of_media(ran("/draw", "img")),
    "audio": of_media(ran("/speak", "audio")),
    "video": of_media(ran("/film", "video")),
    "table": of_media(ran("/rows", "table")),
    "file": of_media(ran("/file", "a[download='weights.zip']")),
    "progress": of_media(run_slowly, leave=stop),
    "refused": of_media(ran("/refuse", ".failure"), FAILS),
    "missing": of_media(leave_out_what_is_required),
    "own-routes": Kind("notes", "/", FORM, search, SAID_BY_NOTES),
    "loading": Kind("loading", "/", "!!document.querySelector('.sheet.empty')", data=frozenset({"slow"})),
    "docs": Kind("text", "/docs", "!!document.querySelector('.opblock')", try_an_operation, is_ours=False),
    # The token is asked for by a 401.
    "docs-closed": Kind(
        "closed",
        "/docs",
        "!!document.querySelector('#token, .opblock')",
        authorize,
        complaints=frozenset({"401"}),
        is_ours=False,
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer(kind: str, language: str, browser: Browser, request: pytest.FixtureRequest) -> None:
    about = KINDS[kind]
    look(browser, request.getfixturevalue(about.server), kind, about, language)
