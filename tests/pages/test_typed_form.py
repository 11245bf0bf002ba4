"""The playground of a typed script: a field for every parameter, made of the hints."""

from __future__ import annotations

from pathlib import Path

from support.browser import browsing
from support.server import serving

SCRIPT = """
from dataclasses import dataclass
from typing import Literal, Optional

@dataclass
class Box:
    x: int = 1

def predict(text: str, times: int = 2, mode: Literal["fast", "good"] = "good", box: Optional[Box] = None) -> list:
    return [text * times, mode, box and box.x]
"""
NAMES = "[...document.querySelectorAll('form.request .field')].map(one => one.textContent.trim().split(/\\W/)[0])"
DONE = "Number(document.querySelector('.result').dataset.done ?? 0)"


def test_every_parameter_has_a_field_and_the_example_runs(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCRIPT)
    with serving(tmp_path) as server, browsing() as browser:
        browser.open(server.url)
        browser.wait("!!document.querySelector('form.request')", 30)
        assert browser.run(NAMES) == ["text", "times", "mode", "box"]
        before = browser.run(DONE)
        browser.run("document.querySelector('form.request').requestSubmit()")
        browser.wait(f"{DONE} > {before}", 30)
        assert "texttext" in browser.run("document.querySelector('.result').textContent")
        assert browser.complaints == []
