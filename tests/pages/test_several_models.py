"""The playground and the status page of a server that has several models."""

from __future__ import annotations

from support.browser import browsing
from support.server import PACKAGES, serving


def test_every_model_can_be_tried() -> None:
    folder = PACKAGES / "documented_json"
    with serving(folder, f"other={PACKAGES / 'function'}") as server, browsing() as browser:
        browser.resize(1280, 900)
        browser.open(server.url)
        browser.wait("!!document.querySelector('form.request')")
        assert browser.run("[...document.querySelector('#model').options].map((one) => one.value)") == [
            "documented_json", "other",
        ]  # fmt: skip
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
        browser.open(server.url + "/status")
        browser.wait("document.querySelectorAll('.workers tbody tr').length === 2")
        shown = browser.run("document.querySelector('.workers').innerText")
        assert "documented_json 0" in shown
        assert "other 0" in shown
        assert browser.complaints == []
