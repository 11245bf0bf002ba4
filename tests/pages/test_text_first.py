"""The playground puts text first: fields by hints, answers as what they are, failures that say what failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.tools.scaffold import create
from support.browser import Browser
from support.playground import DONE, choose_route, put, run, visit
from support.server import Server, serving

RESULT = "document.querySelector('.result')"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("pages_text", "--dev", "--max-body", "100kB") as server:
        yield server


@pytest.fixture(autouse=True)
def opened(browser: Browser, server: Server) -> None:
    visit(browser, server.url)


def test_a_text_is_a_field_and_the_docstring_the_title(browser: Browser) -> None:
    assert browser.run("document.querySelector('h1').innerText") == "How does a sentence feel?"
    assert "Says back" in browser.run("document.querySelector('.lead').innerText")
    assert browser.run("document.querySelector('.request textarea').classList.contains('code')") is False
    assert browser.run("document.querySelector('.advanced').open") is False
    labels = browser.run("[...document.querySelectorAll('.request .body .label')].map((one) => one.textContent)")
    assert labels == ["text", "tone", "note", "most", "again"]
    needed = browser.run("[...document.querySelectorAll('.request .needed')].map((one) => one.textContent)")
    assert needed == ["text"]
    assert "optional" not in browser.text()


def test_nothing_is_null_and_defaults_of_enums_are_kept(browser: Browser) -> None:
    shown = run(browser)
    assert "Tone LOUD" in shown or "LOUD" in shown
    assert "NoneType None" in shown
    assert "str null" not in shown
    put(browser, ".request input[type=text]", "x")
    assert "str x" in run(browser)
    browser.run("(() => { const one = document.querySelector('.request input[type=text]'); one.value = '';"
                "one.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert run(browser).count("NoneType None") == 2


def test_nothing_in_a_form_is_none(browser: Browser, tmp_path: Path) -> None:
    choose_route(browser, "/form")
    (tmp_path / "a.bin").write_bytes(b"abc")
    browser.choose_file(".request input[type=file]", tmp_path / "a.bin")
    assert "None" in run(browser)
    assert "'null'" not in browser.run(f"{RESULT}.innerText")


def test_a_checkbox_stands_beside_its_label(browser: Browser) -> None:
    middle = "(box) => box.top + box.height / 2"
    tops = [
        browser.run(f"({middle})(document.querySelector('.request .beside {part}').getBoundingClientRect())")
        for part in ("input", ".label")
    ]
    assert abs(tops[0] - tops[1]) < 8


def test_scores_are_per_cent_below_the_best(browser: Browser) -> None:
    choose_route(browser, "/mood")
    shown = run(browser)
    assert browser.run("document.querySelector('.headline-answer').innerText") == "joy 93.1 %"
    assert "6.9 %" in shown
    browser.resize(390, 844, phone=True)
    lines = (
        "[...document.querySelectorAll('.bars .number')].map((one) => one.getClientRects().length + one.offsetHeight)"
    )
    first, second = browser.run(lines)
    browser.resize(1280, 900)
    assert first == second, "93.1 % is on one line of a phone"


def test_one_label_with_its_score_is_a_headline_too(browser: Browser, tmp_path: Path) -> None:
    """As the package shows it that `panglot new text` writes."""
    create("plain", tmp_path / "friendly", kind="text")
    with serving(tmp_path / "friendly") as friendly:
        visit(browser, friendly.url)
        assert "94.8 %" in run(browser)
        assert browser.run("document.querySelector('.headline-answer').innerText") == "friendly 94.8 %"
        assert browser.run("document.querySelectorAll('.bars li').length") == 1
        names = browser.run("[...document.querySelectorAll('.result [role=tab]')].map((one) => one.innerText)")
        assert names == ["Labels", "Values", "JSON", "Raw"]


def test_html_is_shown_in_a_frame_that_can_do_nothing(browser: Browser, server: Server) -> None:
    choose_route(browser, "/page")
    run(browser)
    inside = "document.querySelector('.framed').contentDocument"
    browser.wait(f"{inside}?.querySelector('h1')?.innerText === 'text'")
    assert browser.run("document.querySelector('.framed').offsetHeight") < 200, "it is as high as what is in it"
    assert browser.run(f"getComputedStyle({inside}.querySelector('h1')).color") == "rgb(1, 2, 3)"
    assert browser.run("document.querySelector('.framed').sandbox.value") == "allow-same-origin"
    assert browser.run("window.harmed") is None
    # What the frame's policy refuses is never sent: the server has counted nothing.
    assert '"/status.json"' not in server.client.get("/metrics").text


def test_markdown_tables_sounds_and_broken_pictures(browser: Browser) -> None:
    choose_route(browser, "/markdown")
    run(browser)
    assert browser.run(f"{RESULT}.querySelector('.markdown h3').innerText") == "text"
    assert browser.run(f"{RESULT}.querySelectorAll('img').length") == 0
    choose_route(browser, "/table")
    run(browser)
    assert browser.run(f"[...{RESULT}.querySelectorAll('td')].map((one) => one.innerText)") == ["fox", "3", "a, b", "4"]
    choose_route(browser, "/sound")
    run(browser)
    assert browser.run(f"!!{RESULT}.querySelector('audio')")
    choose_route(browser, "/broken")
    run(browser)
    browser.wait(f"{RESULT}.innerText.includes('This image is broken')")


def test_a_failure_in_mid_stream_says_what_failed(browser: Browser) -> None:
    choose_route(browser, "/fails")
    shown = run(browser)
    assert "The stream broke off" in shown
    assert "the third word is missing" in shown
    assert "Is it still running" not in shown
    took = browser.run("document.querySelectorAll('.facts dd')[1].innerText")
    assert float(took.removesuffix(" ms")) >= 400, "the script has slept twice before it failed"


def test_every_part_before_a_failure_is_shown(browser: Browser) -> None:
    """Also those that came in the same moment: the connection does not break, at which the browser would drop them."""
    choose_route(browser, "/at-once")
    for _ in range(20):
        shown = run(browser)
        assert browser.run("document.querySelector('.result .plain').innerText").split() == [
            f"word{number}" for number in range(6)
        ]
        assert "The stream broke off" in shown
        assert "there is no seventh word" in shown
        assert shown.count("broke off") == 1
        assert browser.run("document.querySelectorAll('.result .failure').length") == 1


def test_the_time_of_a_stream_is_inference(browser: Browser) -> None:
    choose_route(browser, "/slow")
    before = browser.run(DONE)
    browser.click("form.request .primary")
    browser.wait("/[0-9.]+ s/.test(document.querySelector('.clock:not([hidden])')?.innerText ?? '')")
    browser.wait(f"{DONE} > {before}")
    legend = "[...document.querySelectorAll('.timeline li')].map((one) => one.innerText.split(' '))"
    times = browser.run(f"Object.fromEntries({legend}.map(([name, ms]) => [name, parseFloat(ms)]))")
    assert times["inference"] > times["network"]
    assert browser.run("document.querySelector('.clock').hidden")


def test_what_the_server_would_refuse_is_not_sent(browser: Browser) -> None:
    sent = len(browser.requested)
    browser.run("document.querySelector('.request textarea').value = 'x'.repeat(200000)")
    assert "It was not sent" in run(browser)
    assert not [url for url in browser.requested[sent:] if url.endswith("/predict")]


def test_several_examples_fill_the_form(browser: Browser) -> None:
    names = browser.run("[...document.querySelectorAll('.gallery button')].map((one) => one.innerText)")
    assert names == ["lovely", "rain"], "and nothing that is made up of type hints"
    assert browser.run("document.querySelector('.request textarea').value") == "What a lovely day"
    browser.run("document.querySelectorAll('.gallery button')[1].click()")
    assert browser.run("document.querySelector('.request textarea').value") == "Oh no, it rains again"
