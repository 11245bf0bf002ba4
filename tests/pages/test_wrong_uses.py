"""What the pages say to somebody whose key, server, script or model is not as it should be, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.web.access import key_file
from support.browser import Browser
from support.playground import put, run, visit
from support.server import PACKAGES, Server, serving, wait_until

ENTRIES = {
    "infers": (),
    "looks": ('may = ["pages"]',),
    "one": ('may = ["infer", "jobs", "pages"]', 'models = ["other"]'),
}
SECRETS = {name: key_file.new_secret() for name in ENTRIES}
STATE = "document.querySelector('#state').innerText"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text("\n".join(key_file.written(name, SECRETS[name], lines) for name, lines in ENTRIES.items()))
    flags = (f"other={PACKAGES / 'function'}", "--keys", str(file))
    with serving("job_steps", *flags, env={"PANGLOT_TOKEN": "secret"}) as server:
        yield server


def log_in(browser: Browser, server: Server, name: str) -> None:
    browser.open("about:blank")
    browser.call("Network.clearBrowserCookies")
    browser.open(server.url)
    browser.type("#token", SECRETS[name])
    browser.press("Enter")


def offline(browser: Browser, on: bool) -> None:
    browser.call("Network.emulateNetworkConditions", offline=on, latency=0, downloadThroughput=-1, uploadThroughput=-1)


def test_a_key_without_the_right_to_pages_is_told_so(keyed: Server, browser: Browser) -> None:
    log_in(browser, keyed, "infers")
    browser.wait("document.querySelector('#why').innerText.includes('may not see the pages')")


def test_a_key_that_may_only_look_is_told_what_it_lacks(keyed: Server, browser: Browser) -> None:
    log_in(browser, keyed, "looks")
    browser.wait("document.querySelectorAll('.card').length === 2")
    visit(browser, f"{keyed.url}/?model=other")
    shown = run(browser)
    assert "is not allowed 'infer'" in shown
    assert "The key that you logged in with may not do this" in shown
    assert "--cors-origin" not in shown


def test_a_key_for_one_model_sees_only_this_one(keyed: Server, browser: Browser) -> None:
    log_in(browser, keyed, "one")
    browser.wait("!!document.querySelector('.card')")
    names = "[...document.querySelectorAll('.card')].map((one) => one.dataset.model)"
    assert browser.run(names) == ["other"]
    visit(browser, f"{keyed.url}/?model=other")
    assert "got" in run(browser)
    browser.open(f"{keyed.url}/?model=job_steps")
    browser.wait("!!document.querySelector('.card')")
    assert browser.run(names) == ["other"]
    reloaded = [
        browser.run(f"fetch('reload{query}', {{ method: 'POST' }}).then((answer) => answer.status)")
        for query in ("", "?model=job_steps", "?model=other")
    ]
    assert reloaded == [403, 403, 202]


def test_a_script_that_ends_its_process(browser: Browser) -> None:
    with serving("job_steps") as server:
        visit(browser, server.url)
        put(browser, "form.request textarea", json.dumps({"exit": 1}))
        assert "This input ended the script's process" in run(browser)
        run(browser)
        assert "the server no longer runs it" in run(browser)


def test_a_server_that_cannot_be_reached_for_a_while(browser: Browser) -> None:
    """The page says so in its own words, and goes on when the server is back."""
    with serving("job_steps") as server:
        browser.open(f"{server.url}/jobs")
        browser.wait("document.body.innerText.includes('No jobs yet')")
        offline(browser, True)
        try:
            browser.wait("document.body.innerText.includes('This page goes on when it is back')")
        finally:
            offline(browser, False)
        browser.wait("!document.body.innerText.includes('This page goes on when it is back')")
        browser.open("about:blank")
        browser.speak("zh-CN")
        try:
            visit(browser, server.url)
            offline(browser, True)
            shown = run(browser)
            browser.wait(f"{STATE} === '连接不上服务器'")
        finally:
            # The tests that follow use the same browser.
            offline(browser, False)
            browser.speak("en-US")
        assert "连接不上服务器" in shown
        assert "fetch" not in shown, "the browser's own words are not the user's"
        put(browser, "form.request textarea", json.dumps({"b": 2}))
        run(browser)
        browser.wait(f"{STATE} === '就绪'")


def test_a_model_that_wakes_up(browser: Browser, tmp_path: Path) -> None:
    flags = ("--sleep-after", "1h", "--state-folder", str(tmp_path))
    with serving("documented_json", *flags):
        pass
    with serving("documented_json", *flags, ready=False) as server:
        wait_until(lambda: server.client.get("/playground.json").json()["state"] == "asleep")
        visit(browser, server.url)
        browser.wait(f"{STATE} === 'asleep'")
        run(browser)
        browser.wait(f"{STATE} === 'ready'")
