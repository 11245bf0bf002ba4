"""A model with OpenAI's chat route opens on a conversation, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from panglot.tools.scaffold import create
from support.browser import Browser
from support.server import Server, serving

DONE = "Number(document.querySelector('.messages').dataset.done ?? 0)"
LAST = "document.querySelector('.bubble:last-child')"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("pages_chat") as server:
        yield server


@pytest.fixture(autouse=True)
def fresh(browser: Browser, server: Server) -> None:
    browser.open(server.url)
    browser.run("localStorage.clear()")
    browser.complaints.clear()
    browser.open("about:blank")
    browser.open(server.url)
    browser.wait("!!document.querySelector('.composer textarea')")


def write(browser: Browser, text: str) -> None:
    browser.type(".composer textarea", text)
    browser.press("Enter")


def say(browser: Browser, text: str) -> str:
    """Send a message, and what is answered to it."""
    before = browser.run(DONE)
    write(browser, text)
    browser.wait(f"{DONE} > {before}", 30)
    return str(browser.run(f"{LAST}.innerText"))


def press(browser: Browser, words: str) -> None:
    browser.run(
        f"[...document.querySelectorAll('.chat button')].filter((one) => one.innerText === '{words}').at(-1).click()"
    )


def test_an_answer_streams_as_markdown_that_cannot_harm(browser: Browser) -> None:
    write(browser, "How do I count lines?")
    browser.wait(
        "!!document.querySelector('.bubble.assistant .markdown') && !!document.querySelector('[aria-busy=true]')"
    )
    browser.wait(f"{DONE} > 0", 30)
    assert browser.run(f"{LAST}.querySelector('strong').innerText") == "how"
    assert browser.run(f"{LAST}.querySelectorAll('ol li').length") == 2
    assert "def count(path)" in browser.run(f"{LAST}.querySelector('.fenced pre').innerText")
    assert browser.run(f"{LAST}.querySelectorAll('td').length") == 2
    links = browser.run(f"[...{LAST}.querySelectorAll('a')].map((one) => one.href)")
    assert links == ["https://example.com/"]
    assert browser.run("window.harmed") is None
    shown = browser.run(f"{LAST}.innerText")
    assert "[DONE]" not in shown
    assert "tokens" in shown
    assert browser.complaints == []


def test_markdown_as_models_write_it(browser: Browser) -> None:
    """Bold in italics, entities, lists in lists with their own bullets, and lists of what is to be done."""
    text = "*so **very** good*, 1 &lt; 2 &amp;amp; `&lt;`\n\n- one\n  - two\n\n* [ ] to do\n* [x] done"
    say(browser, f"say {text}")
    said = f"{LAST}.querySelector('.markdown')"
    assert browser.run(f"{said}.querySelector('em').innerText") == "so very good"
    assert browser.run(f"{said}.querySelector('em strong').innerText") == "very"
    assert browser.run(f"{said}.querySelector('p').innerText") == "so very good, 1 < 2 &amp; &lt;"
    bullets = f"[...{said}.querySelectorAll('ul')].map((one) => getComputedStyle(one).listStyleType)"
    assert browser.run(bullets)[:2] == ["disc", "circle"]
    tasks = browser.run(f"[...{said}.querySelectorAll('.task')].map((one) => one.innerText)")
    assert tasks == ["☐ to do", "☑ done"]


def test_an_empty_chat_is_in_the_middle_and_the_bar_says_which_is_open(browser: Browser) -> None:
    heights = browser.run(
        "['.talk', '.talk .heading', '.suggestions'].map((one) => document.querySelector(one).getBoundingClientRect())"
        ".map(({ top, bottom, left, right }) => [top, bottom, (left + right) / 2])"
    )
    talk, heading, suggestions = heights
    above, below = heading[0] - talk[0], talk[1] - suggestions[1]
    assert abs(above - below) < 40
    assert [round(one[2] / 10) for one in heights] == [round(talk[2] / 10)] * 3
    assert browser.run("document.querySelector('.chat-title').innerText") == ""
    say(browser, "who")
    assert browser.run("document.querySelector('.chat-title').innerText") == "who"
    assert browser.run("getComputedStyle(document.querySelector('.talk')).display") == "block"


def test_system_prompt_and_parameters_are_sent(browser: Browser) -> None:
    press(browser, "Settings")
    browser.type(".drawer textarea", "Be brief")
    browser.run(
        "(() => { const number = document.querySelector('.drawer input[type=number]'); number.value = '0.2';"
        "number.dispatchEvent(new Event('input')); })()"
    )
    assert "system: Be brief; temperature 0.2" in say(browser, "who")
    assert browser.run("document.querySelector('.drawer [role=tab]').innerText") == "openai"
    code = browser.run("document.querySelector('.drawer .snippet pre').textContent")
    assert "client.chat.completions.create(" in code
    assert "temperature=0.2" in code


def test_an_answer_may_come_whole(browser: Browser) -> None:
    """Streaming is on until somebody switches it off, and then code for `openai` does not stream either."""
    press(browser, "Settings")
    switch = "document.querySelector('.drawer [role=switch]')"
    assert browser.run(f"{switch}.checked")
    browser.run(f"{switch}.click()")
    shown = say(browser, "say **whole**")
    assert browser.run(f"{LAST}.querySelector('strong').innerText") == "whole"
    assert "token" in shown
    assert "first word" not in shown
    assert "stream" not in browser.run("document.querySelector('.drawer .snippet pre').textContent")


def test_the_code_for_openai_runs_as_pasted(browser: Browser) -> None:
    press(browser, "Settings")
    say(browser, "who")
    code = browser.run("document.querySelector('.drawer .snippet pre').textContent")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "temperature" in done.stdout, (code, done.stderr)


def test_stop_and_retry(browser: Browser) -> None:
    write(browser, "endless")
    browser.wait("document.querySelector('.bubble.assistant')?.innerText.includes('steps')")
    press(browser, "Stop")
    browser.wait(f"{DONE} > 0")
    assert "stopped" in browser.run(f"{LAST}.innerText")
    browser.run("document.querySelector('.bubble.user .bubble-buttons button:last-child').click()")
    assert browser.run("document.querySelector('.composer textarea').value") == "endless"
    assert browser.run("document.querySelectorAll('.bubble').length") == 0
    browser.run("document.querySelector('.composer textarea').value = ''")
    say(browser, "who")
    before = browser.run(DONE)
    press(browser, "Retry")
    browser.wait(f"{DONE} > {before}")
    assert browser.run("document.querySelectorAll('.bubble').length") == 2


def test_a_failure_is_said_in_the_conversation(browser: Browser) -> None:
    shown = say(browser, "fail")
    assert "It begins well," in shown
    assert "failed" in shown, shown
    assert "Retry" in shown


def test_an_answer_is_copied_as_it_was_written(browser: Browser) -> None:
    say(browser, "How do I count lines?")
    copied = browser.run(
        """(async () => {
          let copied = "";
          Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { copied = text; } } });
          const buttons = [...document.querySelectorAll(".bubble:last-child .bubble-buttons button")];
          buttons.find((one) => one.innerText === "Copy").click();
          await new Promise((resolve) => setTimeout(resolve, 50));
          return copied;
        })()"""
    )
    assert "```" in copied


def test_a_platform_that_streams_events_as_bytes_has_a_chat_too(browser: Browser) -> None:
    """Truss gives what a script yields as bytes, whatever it is."""
    with serving("truss_openai") as truss:
        browser.open(truss.url)
        browser.wait("!!document.querySelector('.composer textarea')")
        shown = say(browser, "one two three")
        assert "three two one" in shown
        assert "[DONE]" not in shown
        assert "data:" not in shown


def test_pictures_are_sent_where_the_script_takes_them(browser: Browser, tmp_path: Path) -> None:
    Image.new("RGB", (30, 30), (200, 90, 90)).save(tmp_path / "red.png")
    browser.choose_file(".composer input[type=file]", tmp_path / "red.png")
    browser.wait("!!document.querySelector('.chosen img')")
    assert "I see 1 picture" in say(browser, "what is it")
    assert browser.run("document.querySelectorAll('.bubble.user img').length") == 1


def test_examples_of_the_package_are_first_messages(browser: Browser) -> None:
    texts = browser.run("[...document.querySelectorAll('.suggestions button')].map((one) => one.innerText)")
    assert texts == ["How do I count lines?", "who"]
    browser.run("document.querySelectorAll('.suggestions button')[1].click()")
    browser.wait(f"{DONE} > 0", 30)
    assert "system: Be brief" in browser.run(f"{LAST}.innerText")
    assert browser.run("document.querySelector('.suggestions').hidden")
    press(browser, "New chat")
    assert browser.run("document.querySelector('.suggestions').hidden") is False


def test_the_request_of_a_new_chat_is_its_first_message(browser: Browser, tmp_path: Path) -> None:
    create("plain", tmp_path / "greeter", kind="chat")
    (tmp_path / "greeter" / "request.json").write_text('{"messages": [{"role": "user", "content": "Good evening"}]}')
    with serving(tmp_path / "greeter") as greeter:
        browser.open(greeter.url)
        browser.wait("document.querySelector('.suggestions')?.innerText === 'Good evening'")
        browser.click(".suggestions button")
        browser.wait(f"{DONE} > 0", 30)
        assert "You said: Good evening" in browser.run(f"{LAST}.innerText")


def test_a_chat_by_the_keyboard_alone(browser: Browser) -> None:
    """The field has the focus at once; from there Tab reaches what can be done with the answer."""
    assert browser.run("document.activeElement.matches('.composer textarea')")
    say(browser, "who")
    assert browser.run("document.activeElement.matches('.composer textarea')")
    reached = []
    for _ in range(30):
        browser.press("Tab")
        reached.append(browser.run("document.activeElement.innerText || document.activeElement.type || ''"))
    for words in ("New chat", "Settings", "Copy", "Edit", "Retry", "file", "Playground"):
        assert words in reached, reached


def test_the_history_stays_in_the_browser(browser: Browser, server: Server) -> None:
    say(browser, "who")
    press(browser, "New chat")
    assert browser.run("document.querySelectorAll('.bubble').length") == 0
    say(browser, "How do I count lines?")
    browser.open(server.url)
    browser.wait("document.querySelectorAll('.bubble').length === 2")
    titles = browser.run("[...document.querySelectorAll('.past')].map((one) => one.innerText)")
    assert titles == ["How do I count lines?", "who"]
    browser.click("[aria-label='Delete who']")
    assert browser.run("document.querySelectorAll('.past').length") == 1


@pytest.mark.parametrize("dark", [False, True])
def test_the_chat_on_phones_and_for_everybody(browser: Browser, server: Server, dark: bool) -> None:
    say(browser, "How do I count lines?")
    for width, phone in ((390, True), (1280, False)):
        browser.resize(width, 844, phone=phone, dark=dark)
        browser.open(server.url)
        browser.wait("!!document.querySelector('.bubble')")
        press(browser, "Settings")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.axe() == []
    browser.resize(1280, 900)


def test_the_forms_are_one_click_away(browser: Browser, server: Server) -> None:
    assert browser.run("document.querySelector('.chats a').innerText") == "All routes as forms"
    browser.click(".chats a")
    browser.wait("!!document.querySelector('form.request')")
    browser.run("document.querySelector('form.request .primary').click()")
    browser.wait("!!document.querySelector('.facts')")
    assert "[DONE]" not in browser.run("document.querySelector('.result').innerText")
