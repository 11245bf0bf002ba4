"""The page at `/docs`: Swagger UI from this machine alone, under a strict policy, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from panglot.web.pages.swagger import ASSETS
from support.browser import Browser, browsing
from support.server import Server, serving

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}

ANSWER = ".live-responses-table tr.response .response-col_"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("documented_form") as server:
        yield server


def test_loads_nothing_but_its_own_parts(server: Server) -> None:
    answer = server.client.get("/docs")
    assert answer.status_code == 200
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert not re.search(r"<script>|<script [^>]*>[^<]|\son\w+=", answer.text)
    parts = re.findall(r'(?:src|href)="docs/([^"?]+)', answer.text)
    assert sorted(parts) == sorted(ASSETS)
    ours = re.findall(r'(?:src|href)="(pages/[^"?]+)', answer.text)
    assert all(server.client.get(f"/{part}").status_code == 200 for part in ours)


@pytest.mark.parametrize("name", ASSETS)
def test_parts_are_typed_and_kept(name: str, server: Server) -> None:
    answer = server.client.get(f"/docs/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == TYPES[name.rpartition(".")[2]]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "max-age" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "name", ["app.py", "docs.html", "index.html", "..%2fapp.py", "%2e%2e", "swagger-ui.js.map", "%00"]
)
def test_serves_no_other_file(name: str, server: Server) -> None:
    answer = server.client.get(f"/docs/{name}", headers={"x-request-id": "mine"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"
    assert answer.json()["error"]["request_id"] == "mine"


def try_out(browser: Browser, url: str) -> None:
    browser.open(url)
    browser.click("#operations-inference-predict .opblock-summary-control")
    browser.click(".try-out__btn")


@pytest.mark.rest("a browser")
def test_try_it_out_sends_a_file(server: Server, tmp_path: Path) -> None:
    picture = tmp_path / "dot <b>.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with browsing() as browser:
        browser.resize(1100, 1000)
        try_out(browser, server.url + "/docs")
        browser.choose_file("[data-property-name=image] input[type=file]", picture)
        browser.click(".execute")
        assert browser.wait(f"document.querySelector({ANSWER!r} + 'status')?.innerText").startswith("200")
        shown = browser.run(f"document.querySelector({ANSWER!r} + 'description').innerText")
        assert '"name": "dot <b>.png"' in shown
        assert '"type": "image/png"' in shown
        assert '"size": 264' in shown
        browser.screenshot(tmp_path / "try-it-out.png")
        assert browser.complaints == []
        assert all(url.startswith((server.url, "data:", "blob:")) for url in browser.requested)


@pytest.mark.rest("a browser")
def test_markup_of_a_script_does_nothing() -> None:
    with serving("documented_hostile") as server, browsing() as browser:
        try_out(browser, server.url + "/docs")
        browser.click(".execute")
        browser.wait(f"!!document.querySelector({ANSWER!r} + 'status')")
        assert "<script>window.harmed = true</script>" in browser.text()
        assert browser.run("window.harmed === undefined")
        assert browser.run("document.querySelectorAll('#swagger-ui img[src=x], #swagger-ui script').length") == 0


@pytest.mark.rest("a browser")
def test_an_operation_has_an_address_and_an_answer_is_kept_by_the_keyboard(server: Server, tmp_path: Path) -> None:
    with browsing() as browser:
        browser.resize(1100, 1000)
        browser.open(server.url + "/docs")
        browser.click("#operations-tensors-health_live .opblock-summary-control")
        browser.wait("location.hash === '#/tensors/health_live'")
        browser.open("about:blank")
        browser.open(server.url + "/docs#/tensors/server_metadata")
        browser.click("#operations-tensors-server_metadata.is-open .try-out__btn")
        browser.click(".execute")
        browser.wait("!!document.querySelector('.download-contents[tabindex]')")
        browser.run(
            "document.addEventListener('click', ({ target }) => { window.kept ??= target.download; }, true);"
            "document.querySelector('.download-contents').focus()"
        )
        browser.press("Enter")
        browser.wait("!!window.kept")
        assert browser.run("window.kept").endswith(".json")
