"""The playground of a predictor: the page reads the server's document, not the platform's own."""

from __future__ import annotations

from support.browser import browsing
from support.server import ROOT, serving


def test_the_example_is_in_the_form_and_runs() -> None:
    with serving(ROOT / "examples" / "cog", "--workers", "1") as server, browsing() as browser:
        browser.open(server.url)
        browser.wait("!!document.querySelector('form.request')", 30)
        assert "text" in browser.run("document.querySelector('form.request textarea').value")
        browser.click("form.request .primary")
        browser.wait("!!document.querySelector('.facts')", 30)
        assert "friendly" in browser.run("document.querySelector('.result').textContent")
        assert browser.complaints == []
