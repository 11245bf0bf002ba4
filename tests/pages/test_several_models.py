"""The pages of a server that has several models: the first lists them, the others are about one of them or all."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from support.browser import Browser
from support.server import PACKAGES, Server, serving, wait_until

SIZES = ((1280, 900, False), (390, 844, True))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    others = (f"other={PACKAGES / 'function'}", f"parrot={PACKAGES / 'chat'}", f"slow={PACKAGES / 'check_sleepy'}")
    with serving("documented_json", *others, "--dev") as server:
        server.client.post("/models/documented_json/predict", json={"text": "fail", "labels": [], "options": None})
        server.client.post("/models/other/predict", json=1)
        yield server


OVERLAPPING = """[...document.querySelectorAll('.requests tr[data-id]')].flatMap((row) => {
  const name = row.querySelector('td.model');
  const text = document.createRange();
  text.selectNodeContents(name);
  const mine = text.getBoundingClientRect();
  return [...row.children].filter((one) => one !== name && one.checkVisibility()).filter((one) => {
    const other = one.getBoundingClientRect();
    return other.left < mine.right && mine.left < other.right && other.top < mine.bottom && mine.top < other.bottom;
  }).map((one) => `${name.innerText} ${one.className}`);
})"""
"""The cells of requests that the name of a model is written over."""


def links(browser: Browser) -> dict[str, str]:
    pairs = browser.run(
        "[...document.querySelectorAll('nav a')].map((one) => [one.innerText, one.getAttribute('href')])"
    )
    return dict(pairs)


def test_the_first_page_lists_them(server: Server, browser: Browser) -> None:
    browser.open(server.url)
    browser.wait("document.querySelectorAll('.card').length === 4")
    card = "document.querySelector('.card[data-model=documented_json]')"
    assert "Scores a text against labels" in browser.run(f"{card}.querySelector('h2').innerText")
    assert browser.run(f"{card}.querySelector('.state').innerText") == "ready"
    assert browser.run("document.title") == "Models · Panglot"
    assert links(browser) == {"Models": "./", "Status": "status", "API": "docs"}
    for width, height, phone in SIZES:
        for dark in (False, True):
            browser.resize(width, height, phone=phone, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.axe() == []
    browser.resize(1280, 900)
    browser.click(".card[data-model=parrot] .primary")
    browser.wait("!!document.querySelector('.composer')")
    assert browser.run("document.title") == "Playground · parrot"


def test_every_model_can_be_tried(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/?model=documented_json")
    browser.wait("!!document.querySelector('form.request')")
    names = browser.run("[...document.querySelector('#model').options].map((one) => one.value)")
    assert names == ["documented_json", "other", "parrot", "slow"]
    browser.click("form.request .primary")
    browser.wait("!!document.querySelector('.facts')")
    assert "200" in browser.run("document.querySelector('.facts').innerText")
    assert "/models/documented_json/predict" in browser.run("document.querySelector('.snippet').innerText")
    browser.open(server.url + "/models/other")
    browser.wait("document.querySelector('#model')?.value === 'other'")
    browser.type("form.request textarea", "")
    browser.run("document.querySelector('form.request textarea').value = '7'")
    browser.click("form.request .primary")
    browser.wait("!!document.querySelector('.facts')")
    assert "7" in browser.run("document.querySelector('.result').innerText")
    assert links(browser) == {
        "Models": "./", "Playground": "./?model=other", "Status": "status?model=other", "API": "docs?model=other",
    }  # fmt: skip
    tensors = "[...document.querySelectorAll('select option')].map((one) => one.textContent)"
    assert "POST /v2/models/other/infer" in browser.run(tensors)
    assert browser.complaints == []


def test_the_document_of_a_model_is_its_own(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/models/documented_json/docs")
    browser.wait("!!document.querySelector('.opblock-summary-path')")
    assert browser.run("location.pathname + location.search") == "/docs?model=documented_json"
    assert browser.run("document.querySelector('.title').innerText").startswith("documented_json")
    shown = browser.run("document.querySelector('#swagger-ui').innerText")
    assert "Scores a text against labels" in shown
    assert "/v1/chat/completions" not in shown
    document = server.client.get("/models/other/openapi.json").json()
    assert document["info"]["title"] == "other"
    assert document["paths"]["/v2/models/other/infer"]["servers"] == [{"url": "/"}]
    assert "servers" not in document["paths"]["/predict"]
    whole = server.client.get("/openapi.json").json()
    assert whole["paths"]["/models/other/predict"]["post"]["tags"] == ["other"]
    assert {"documented_json", "other", "parrot", "slow"} <= {tag["name"] for tag in whole["tags"]}


def test_the_status_page_tells_models_apart(server: Server, browser: Browser) -> None:
    browser.open(server.url + "/status")
    browser.wait("document.querySelectorAll('.workers tbody tr').length === 4")
    browser.wait("document.querySelectorAll('tr[data-id]').length >= 2")
    models = "[...document.querySelectorAll('.requests tr[data-id] td.model')].map((one) => one.innerText)"
    assert {"documented_json", "other"} <= set(browser.run(models))
    tops = "new Set([...document.querySelectorAll('.headline dt')].map((one) => one.offsetTop)).size"
    assert browser.run(tops) == 1, "the figures are in one line, with the list of models beside them"
    assert "--dev is on" in browser.run("document.querySelector('.status').innerText")
    assert browser.run("document.querySelector('.errors td.model').innerText") == "documented_json"
    browser.run("document.querySelector('#model').value = 'other'")
    browser.run("document.querySelector('#model').dispatchEvent(new Event('change'))")
    browser.wait("location.search === '?model=other'")
    browser.wait("document.querySelectorAll('.workers tbody tr').length === 1")
    assert browser.run("document.querySelectorAll('.errors tbody tr').length") == 0
    assert set(browser.run(models)) == {"other"}
    assert browser.run("document.querySelector('#model').value") == "other"
    wait_until(lambda: server.client.get("/status.json?model=other").json()["answered"] >= 1)
    for width, height, phone in SIZES:
        browser.resize(width, height, phone=phone)
        assert browser.run("document.documentElement.scrollWidth") <= width
    browser.open(server.url + "/status")
    browser.wait("document.querySelectorAll('tr[data-id]').length >= 2")
    browser.resize(390, 844, phone=True)
    assert browser.run(OVERLAPPING) == []
    browser.resize(1280, 900)
    assert browser.axe() == []
    assert browser.complaints == []


def test_figures_of_one_model_are_its_own(server: Server) -> None:
    def figures(name: str) -> dict[str, object]:
        shown: dict[str, object] = server.client.get("/status.json", params={"model": name}).json()
        return shown

    # Its script sleeps; while it does, the queue shows on its own figures and those of all.
    calls = [
        threading.Thread(target=server.client.post, args=("/models/slow/predict",), kwargs={"json": {"seconds": 3}})
        for _ in "ab"
    ]
    for call in calls:
        call.start()
    wait_until(lambda: figures("slow")["in_progress"] == 2)
    wait_until(lambda: figures("")["in_progress"] == 2)
    assert figures("other")["in_progress"] == 0
    for call in calls:
        call.join()
    assert {worker["model"] for worker in figures("slow")["workers"]} == {"slow"}  # type: ignore[attr-defined]
    assert server.client.get("/status.json?model=nobody").status_code == 404
    assert server.client.get("/status/events?model=nobody").status_code == 404
